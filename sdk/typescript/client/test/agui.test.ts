import { agentTests } from "./agui.cases.js";

agentTests(async () => (await import("@waggle-dev/client/agui")).WaggleAgent);
