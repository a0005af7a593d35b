import { cutsTest } from "./cuts.cases.js";

cutsTest(150, 1);
