package myagent

import (
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

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
	noWorker, workerBack                                         string
	retryIn, retryWith, incomplete, thought                      string

	mayCall, toolWith, clientTool, allow, deny, agentAsks, answer, callAnswered, options, waitsForPeople string

	notices map[string]string     // by code, or by the text of the log: texts of notices, empty = those of the log
	faults  map[fault.Code]string // the catalogue of errors, empty = its own texts
}

// people returns the text of an error for people, in their language if it is that of the catalogue. A text of its own stays
// as it is.
func (w *words) people(code, text string) string {
	entry := fault.Lookup(fault.Code(code))
	translated := w.faults[entry.Code]
	switch {
	case translated == "":
		return text
	case text == entry.Message, text == "":
		return translated
	case text == entry.Problem():
		problem, _, _ := strings.Cut(translated, "。")
		return problem + "。"
	}
	return text
}

// problem returns the text of an error that more follows, for people: without the remedy of the catalogue.
func (w *words) problem(code, text string) string {
	if entry := fault.Lookup(fault.Code(code)); text == entry.Message {
		text = entry.Problem()
	}
	text = w.people(code, text)
	if len(w.faults) > 0 && !strings.HasSuffix(text, "。") {
		text += " "
	}
	return text
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
	noWorker: "目前没有可用的工作进程，恢复后会继续回答，无需重新发送", workerBack: "工作进程已恢复，继续处理",
	thought: "思考完成", retryIn: "%s%s 秒后重试（第 %d/%d 次）", retryWith: "%s%s 秒后改用模型 %s（第 %d/%d 次）", incomplete: "%s\n\n（%s）",

	notices: map[string]string{
		event.AnswerCut:      "回答不完整：已达到 token 上限",
		event.AnswerWithheld: "回答不完整：模型服务的内容过滤器拦截了其余部分",
		event.AnswerRefused:  "模型拒绝继续回答",
		event.AnswerUnsure:   "回答可能不完整：模型服务因未知原因结束了回答",
		event.ToolLeftOut:    "模型服务不支持工具，已在没有工具的情况下回答",
		event.ModelInstead:   "原模型目前不可用，由备用模型回答",

		"Done.":                                   "已完成",
		"No such task is being solved.":           "没有正在求解的此任务",
		"The task already has a result.":          "任务已有结果",
		"This task does not exist. Check its id.": "任务不存在，请检查其 id",
		"The active run has no such task, or can no longer go back.": "正在进行的运行没有此任务，或已无法返回",
		"No plan is in progress.":                                    "没有正在制定的规划",
		"The plan is already running.":                               "规划已在执行",
		"A plan needs a request. Send one.":                          "规划需要一个问题，请发送",
		"Another plan is being made.":                                "正在重新规划",
		"A new run was started.":                                     "已开始新的运行",
	},
	faults: faultsInChinese,

	mayCall: "是否允许调用工具 %s？", toolWith: "工具：%s；参数：%s", clientTool: "等待提供该工具的客户端执行。工具：%s；参数：%s", allow: "允许", deny: "拒绝",
	agentAsks: "智能体提问", answer: "回答", callAnswered: "工具调用已答复：%s", options: "（可选：%s）", waitsForPeople: "等待人工答复",
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
	runStarted: "The run has started", discarded: "The text so far was discarded", toolStarted: "The tool is running: %s", usage: "Model usage: %s",
	refused: "A worker that had lost its claim was refused", answered: "The plan was answered: %s", replayed: "Replay completed",
	batch: "Missed events", historyExpired: "Part of the history has expired. The rest begins at %d", other: "Notice",
	noWorker:   "No worker is available to answer. The answer comes when a worker is back; you need not send anything again.",
	workerBack: "A worker is available again, and work goes on.",
	thought:    "The model has finished thinking", retryIn: "%s Trying again in %s s (%d of %d).", retryWith: "%[1]s Asking the model %[3]s in %[2]s s (%[4]d of %[5]d).", incomplete: "%s\n\n(%s)",

	mayCall: "May the tool %s be called?", toolWith: "Tool: %s. Arguments: %s", clientTool: "The run waits for the client that offers the tool to carry it out. Tool: %s. Arguments: %s", allow: "Allow", deny: "Deny",
	agentAsks: "The agent asks", answer: "Answer", callAnswered: "The tool call was answered: %s", options: " (options: %s)", waitsForPeople: "Waiting for people to answer",
}
