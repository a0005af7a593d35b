import { chatTests } from "./chat.cases.js";

chatTests("6");
