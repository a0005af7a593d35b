/** Where the pages of the project are read. */
export const docs = "https://github.com/waggle-dev/waggle/blob/main/docs/";

/** The pages that people look for while they use the console, by name. */
export const pages: readonly (readonly [name: string, file: string])[] = [
  ["Tour", "TOUR.md"],
  ["Console", "CONSOLE.md"],
  ["Configuration", "CONFIGURATION.md"],
  ["Models", "MODELS.md"],
  ["HTTP API", "HTTP.md"],
  ["Operations", "OPERATIONS.md"],
  ["Security", "SECURITY.md"],
  ["Upgrading", "UPGRADING.md"],
  ["Glossary", "GLOSSARY.md"],
  ["Events", "generated/events.md"],
  ["Errors", "generated/errors.md"],
  ["Protocol: AG-UI", "PROTOCOL-AGUI.md"],
  ["Protocol: Agent Swarm Protocol", "PROTOCOL-ASP.md"],
  ["Protocol: events", "PROTOCOL-EVENTS.md"],
  ["Protocol: MyAgent", "PROTOCOL-MYAGENT.md"],
  ["Protocol: ORBIT", "PROTOCOL-ORBIT.md"],
  ["Protocol: teams", "PROTOCOL-TEAM.md"],
];
