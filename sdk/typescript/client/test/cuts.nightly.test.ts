import { cutsTest } from "./cuts.cases.js";

// The whole number of kills takes minutes: WAGGLE_TS_KILLS=50.
cutsTest(Number(process.env["WAGGLE_TS_CUTS"] ?? 1000), Number(process.env["WAGGLE_TS_KILLS"] ?? 3));
