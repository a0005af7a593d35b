import { vi } from "vitest";
import { agentTests } from "./agui.cases.js";

// The newest releases of CopilotKit and assistant-ui still bring this release of the client.
vi.mock("@ag-ui/client", () => import("ag-ui-client-0"));

agentTests(async () => (await import("@waggle-dev/client/agui")).WaggleAgent);
