package myagent

// Lengths to which texts for people are cut, in characters. They are the original's.
const (
	longText  = 200 // a partial answer, the beginning of a tool's result
	shortText = 120 // a question, the summary of a plan
)

// words are the texts for people in one language. Those with verbs are formats.
type words struct {
	connected, heartbeat, created, ended, thinking, toolCall, toolResult, timeout, interrupted string
	planCancelled, taskCancelled, aggregating, aggregated, pipelineDone, confirmOther          string

	planning, planReady, confirmPlan, summary                    string
	solving, solved, taskFailed, progress, retrying, retryingOf  string
	restarted, agentError, systemError, executionError           string
	invalid, tooLong, recoveryFailed                             string
	approve, modify, reject                                      string
	runStarted, discarded, toolStarted, usage, refused, answered string
	replayed, batch, historyExpired, other                       string
}

var inChinese = words{
	connected: "已连接到服务器", heartbeat: "心跳", created: "会话创建成功", ended: "会话已结束", thinking: "正在思考…",
	toolCall: "执行工具调用…", toolResult: "工具返回结果", timeout: "执行超时", interrupted: "执行已中断",
	planCancelled: "规划已取消", taskCancelled: "求解已取消", aggregating: "开始聚合", aggregated: "聚合完成",
	pipelineDone: "流水线完成", confirmOther: "请确认操作",

	planning: "开始规划：%s", planReady: "规划完成（%d 个任务）", confirmPlan: "请确认规划（%d 个任务）", summary: "：%s",
	solving: "开始求解：%s", solved: "求解完成：%s", taskFailed: "求解步骤失败：%s", progress: "求解进度：%d%%",
	retrying: "重试中…", retryingOf: "重试中…（%d/%d）", restarted: "任务已重启（尝试 %d/%d）",
	agentError: "Agent 错误：%s", systemError: "系统错误：%s", executionError: "执行错误：%s", invalid: "验证错误：%s",
	tooLong: "超时错误：操作超过 %s 秒", recoveryFailed: "恢复失败：%s",
	approve: "批准并执行", modify: "修改任务", reject: "拒绝规划",
	runStarted: "开始处理", discarded: "此前的文本已作废", toolStarted: "工具开始执行：%s", usage: "模型用量：%s",
	refused: "已拒绝过期的执行者", answered: "规划已答复：%s", replayed: "重放完成", batch: "错过的事件",
	historyExpired: "部分历史已过期，可用的历史从 %d 开始", other: "通知",
}

var inEnglish = words{
	connected: "Connected to the server", heartbeat: "Heartbeat", created: "Session created", ended: "Session ended", thinking: "Thinking…",
	toolCall: "Calling a tool…", toolResult: "The tool returned a result", timeout: "Execution timed out", interrupted: "Execution interrupted",
	planCancelled: "Planning cancelled", taskCancelled: "Solving cancelled", aggregating: "Aggregation started", aggregated: "Aggregation completed",
	pipelineDone: "Pipeline completed", confirmOther: "Please confirm",

	planning: "Planning: %s", planReady: "Plan ready (tasks: %d)", confirmPlan: "Please confirm the plan (tasks: %d)", summary: ": %s",
	solving: "Solving: %s", solved: "Solved: %s", taskFailed: "Step failed: %s", progress: "Progress: %d%%",
	retrying: "Retrying…", retryingOf: "Retrying… (%d/%d)", restarted: "Task restarted (attempt %d/%d)",
	agentError: "Agent error: %s", systemError: "System error: %s", executionError: "Execution error: %s", invalid: "Validation error: %s",
	tooLong: "Timeout: the operation took longer than %s seconds", recoveryFailed: "Recovery failed: %s",
	approve: "Approve and proceed", modify: "Modify tasks", reject: "Reject plan",
	runStarted: "Work has begun", discarded: "The text so far does not count", toolStarted: "The tool is running: %s", usage: "Model usage: %s",
	refused: "A worker that had lost its claim was turned away", answered: "The plan was answered: %s", replayed: "Replay completed",
	batch: "Missed events", historyExpired: "Part of the history has expired. What is left begins at %d", other: "Notice",
}
