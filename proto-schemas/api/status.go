package api

// Status is the current state of an installation, as its processes report it in the directory.
type Status struct {
	Version     string             `json:"version,omitempty"`
	Services    []ServiceStatus    `json:"services"`
	Models      []ModelStatus      `json:"models"`
	ToolServers []ToolServerStatus `json:"tool_servers"`
}

// ServiceStatus is a role of processes.
type ServiceStatus struct {
	Name     string `json:"name"`
	Replicas int    `json:"replicas"`
}

// ModelStatus is a model of the workers.
type ModelStatus struct {
	Name    string `json:"name"`
	Workers int    `json:"workers"`
	Trouble string `json:"trouble,omitempty"` // why a worker cannot use the provider of the model; absent if all can

	// LeftOut are tools that the model was not offered lately, because its provider does not take them. Only operators' checks
	// have it.
	LeftOut []LeftOutTool `json:"left_out,omitempty"`
}

// ToolServerStatus is a tool server of the configuration.
type ToolServerStatus struct {
	Name     string `json:"name"`
	Replicas int    `json:"replicas"` // of the tool service that have it
	Down     int    `json:"down"`     // of them without a connection to it
	// Trouble is why a replica has no connection, without secrets; of a program it ends with its last words. Absent if all are
	// connected, and if only some tenants may use the server.
	Trouble string `json:"trouble,omitempty"`
	// LeftOut are tools of the server that are not on offer; absent if only some tenants may use the server.
	LeftOut []LeftOutTool `json:"left_out,omitempty"`
	// Programs are those of tenants that run, of a server with per_tenant; absent if only some tenants may use the server.
	Programs int `json:"programs,omitempty"`
}
