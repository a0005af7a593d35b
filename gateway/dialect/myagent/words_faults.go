package myagent

import (
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// people returns the text of an error for people, in their language if it is that of the catalogue. A text of its own stays
// as it is.
func (c *codec) people(code, text string) string {
	entry := fault.Lookup(fault.Code(code))
	translated := c.words.faults[entry.Code]
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
func (c *codec) problem(code, text string) string {
	if entry := fault.Lookup(fault.Code(code)); text == entry.Message {
		text = entry.Problem()
	}
	text = c.people(code, text)
	if len(c.words.faults) > 0 && !strings.HasSuffix(text, "。") {
		text += " "
	}
	return text
}

// faultsInChinese has the catalogue's messages: the problem is the first sentence, as there.
var faultsInChinese = map[fault.Code]string{
	fault.Internal:            "服务器内部出错。请重试；若仍然出错，请把编号告诉运维人员。",
	fault.BusUnavailable:      "无法连接消息总线，什么都没有接受。请几秒后重试。",
	fault.Overloaded:          "服务器无法接受更多连接。请稍后重试。",
	fault.Draining:            "网关正在重启。请重新连接并从最后的 seq 继续。",
	fault.TenantMoving:        "您的数据正在迁移到另一个单元。请几秒后重新连接并从最后的 seq 继续。",
	fault.CellUnavailable:     "无法连接您的数据所在的单元，什么都没有接受。请几秒后重试。",
	fault.RateLimited:         "消息过多。请降低发送频率后重试。",
	fault.TooManySockets:      "来自同一地址或用户的连接过多。请关闭一些后重试。",
	fault.QuotaExceeded:       "您或您的租户的配额已用完。请等待部分释放，或请运维人员提高配额。",
	fault.BudgetExceeded:      "本次运行的预算已用完。请一次少提一些要求，或请运维人员提高预算。",
	fault.Unauthenticated:     "缺少凭据或凭据无效。请发送 API 密钥或令牌。",
	fault.Expired:             "您的凭据已过期。请获取新的凭据，并从最后的 seq 重新连接。",
	fault.Forbidden:           "您无权执行此操作。请向运维人员申请权限。",
	fault.OriginRefused:       "不允许此网页来源。请把它加入 gateway.allowed_origins。",
	fault.HostRefused:         "此处不提供该主机名。请把它加入 gateway.allowed_hosts。",
	fault.HandshakeSlow:       "未及时收到有效的首条消息。请重新连接。",
	fault.MessageSlow:         "消息传输时间过长。请重新连接并再次发送。",
	fault.PeerSilent:          "长时间没有收到您的信号。请重新连接并从最后的 seq 继续。",
	fault.PeerStuck:           "您长时间没有接收数据。请重新连接并从最后的 seq 继续。",
	fault.MessageTooBig:       "消息超过大小限制。请一次少发送一些。",
	fault.NotText:             "无法识别二进制帧。请以文本发送 JSON。",
	fault.BadUTF8:             "文本不是有效的 UTF-8。请使用 UTF-8 编码并重新连接。",
	fault.BadJSON:             "消息不是有效的 JSON。请更正后重新发送。",
	fault.UnknownType:         "未知的消息类型。请发送协议规定的类型。",
	fault.InvalidField:        "缺少字段或字段的值不允许。请更正后重新发送。",
	fault.NotFound:            "该名称不存在。请检查。",
	fault.SessionNotFound:     "会话不存在。请不带会话连接以开始新会话。",
	fault.SessionClosed:       "会话已结束。请不带会话连接以开始新会话。",
	fault.SessionDeleted:      "会话及其全部内容已删除。请不带会话连接以开始新会话。",
	fault.QueueFull:           "会话中等待的消息过多。请等待答复后再发送。",
	fault.CursorInvalid:       "after 不是此会话中的位置。请使用最后收到的事件的 seq。",
	fault.HeadExpired:         "您请求的部分历史已过期。其余部分随后发送。",
	fault.AttemptsOver:        "已多次尝试，仍无法完成答复。请重新发送消息。",
	fault.TurnLimit:           "模型请求的工具调用轮数超过上限。请一次少提一些要求。",
	fault.RunCancelled:        "答复在完成前被停止。如需答复，请重新发送消息。",
	fault.ModelFailed:         "模型服务出错。请稍后重试。",
	fault.ModelBusy:           "模型服务繁忙。请稍后重试。",
	fault.ModelRefused:        "模型服务认为请求无效并拒绝。请告诉运维人员，原因在日志中。",
	fault.ModelKeyRefused:     "模型服务拒绝了本系统的密钥。请告诉运维人员更换密钥或授权使用该模型。",
	fault.ModelNotFound:       "模型服务没有该模型。请选择其他模型，或请运维人员检查模型名称和服务地址。",
	fault.ModelInputTooLong:   "对话对该模型来说太长。请一次少发送一些，或开始新会话。",
	fault.ModelContentRefused: "模型服务的内容政策拒绝了请求。请换一种说法。",
	fault.ModelOutOfQuota:     "本系统在模型服务的账户额度已用完。请告诉运维人员充值或提高限额。",
	fault.ModelCutOff:         "模型服务的答复中途中断。请重新发送消息。",
	fault.ModelBadReply:       "模型服务的答复无法识别。请重试。",
	fault.ModelNoAnswer:       "模型没有给出答复。请换一种说法，或选择其他模型。",
	fault.ModelTimeout:        "模型服务未及时答复。请稍后重试。",
	fault.ToolNotFound:        "工具不存在。请使用提供的工具。",
	fault.ToolBadInput:        "工具的参数不符合其模式。请更正后重新调用。",
	fault.ToolTimeout:         "工具未及时答复。请稍后重试，或一次少提一些要求。",
	fault.ToolFailed:          "工具报告了错误。请先阅读其说明再重新调用。",
	fault.ToolLost:            "工具运行时其服务器断开。是否已生效未知：重复之前请先检查。",
	fault.ToolCancelled:       "工具调用已取消。如仍需要，请重新调用。",
	fault.ToolsDown:           "没有运行中的工具服务。请启动一个带 tools 角色的进程。",
	fault.SessionBusy:         "会话中有正在进行的运行。请等待其结束、取消它，或把 on_busy 设为 enqueue 或 interrupt。",
	fault.SessionExpired:      "会话不存在或已过期。请创建新会话。",
	fault.StateTampered:       "签名状态被更改，或由其他密钥签名。请使用本系统导出的状态。",
	fault.StateExpired:        "签名状态已超过有效期。请重新导出，或创建新会话。",
	fault.StateTooBig:         "会话状态过大，无法一次导出。请改为从最后的 seq 重新连接。",
	fault.InputAnswered:       "该问题此前已答复。没有任何更改。",
	fault.InputNotFound:       "会话中没有该问题。请使用问题的 step_id。",
	fault.InputExpired:        "问题未在规定时间内得到答复。请重新发送消息。",
	fault.InputRequired:       "运行正在等待答复。请在 resume 中答复所有未决问题后再继续。",
	fault.TaskNotFound:        "本次运行没有该任务。请使用其任务的 id。",
	fault.PlanInvalid:         "这不是可以求解的任务列表。请更正后重新发送。",
	fault.PlanFailed:          "无法为该请求制定规划。请换一种说法后重新发送。",
	fault.TaskTimeout:         "任务未及时完成。请允许更长时间，或缩小任务。",
	fault.TasksFailed:         "没有任务能够完成。请查看每个任务的错误后重新发送消息。",
	fault.TeamNotFound:        "团队不存在。请查询团队列表。",
	fault.TeamInvalid:         "团队无法按此定义工作。请在指出的位置更正。",
	fault.TeamClosed:          "团队已关闭。请创建新团队。",
	fault.MemberNotFound:      "团队没有该成员。请使用成员名称或 node/member 形式的路径。",
	fault.ToolDenied:          "工具调用未获允许。请不使用它，或询问原因。",
	fault.RunNotFound:         "该 id 不存在或无法观看。请检查类型和 id。",
	fault.RunOver:             "该运行不在进行中。没有任何更改。",
	fault.AgentNotFound:       "智能体不存在。请查询智能体列表。",
	fault.AgentOffline:        "智能体未连接，也未及时上线。请稍后重试。",
	fault.AgentLost:           "执行任务的智能体在完成前离开。请重新发送。",
	fault.ClientNotFound:      "客户端不存在。请查询客户端列表。",
	fault.ServiceNotFound:     "服务不存在。请查询服务列表。",
	fault.ServiceBusy:         "服务目前不接受调用。请稍后重试。",
	fault.ServiceLost:         "服务在调用期间断开。是否已生效未知：重复之前请先检查。",
	fault.ServerNotFound:      "MCP 服务器不存在。请查询服务器列表。",
	fault.BadOutput:           "工具的答复不符合其模式。请告诉工具的运维人员。",
	fault.TaskNotOwned:        "任务不属于您：由另一个智能体执行。请放弃它。",
	fault.TaskFinished:        "任务已结束。没有任何更改。",
	fault.TaskOpen:            "任务尚未结束。请等待其结束，或先取消它。",
	fault.PayloadLost:         "该消息存储的数据已过期或损坏。请要求重新发送。",
	fault.TooDeep:             "任务嵌套过深，或会等待自身。请不借助其他智能体求解。",
	fault.NotRegistered:       "此连接未注册。请注册后重新发送。",
	fault.TaskFailed:          "智能体无法完成任务。请查看其错误。",
	fault.NoSuchAgent:         "没有具备此能力的智能体在运行。请启动一个，或不指定能力。",
}
