package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// Attribute keys of the OpenTelemetry semantic conventions v1.41.0, pinned here: v1.42 removed every gen_ai key from
// the package, because these conventions moved to their own repository and are still in development. When they
// settle, only this file has to change.
const (
	KeyOperation      = semconv.GenAIOperationNameKey // one of the Operation values
	KeyProvider       = semconv.GenAIProviderNameKey  // openai, anthropic, demo
	KeyAgentName      = semconv.GenAIAgentNameKey
	KeyConversation   = semconv.GenAIConversationIDKey // the session
	KeyRequestModel   = semconv.GenAIRequestModelKey   // as configured
	KeyMaxTokens      = semconv.GenAIRequestMaxTokensKey
	KeyResponseModel  = semconv.GenAIResponseModelKey // as the provider reports it
	KeyFinishReasons  = semconv.GenAIResponseFinishReasonsKey
	KeyInputTokens    = semconv.GenAIUsageInputTokensKey
	KeyCachedTokens   = semconv.GenAIUsageCacheReadInputTokensKey
	KeyCacheTokens    = semconv.GenAIUsageCacheCreationInputTokensKey
	KeyOutputTokens   = semconv.GenAIUsageOutputTokensKey
	KeyToolName       = semconv.GenAIToolNameKey
	KeyToolCallID     = semconv.GenAIToolCallIDKey
	KeyErrorType      = semconv.ErrorTypeKey // the fault code; set by End
	KeyDestination    = semconv.MessagingDestinationNameKey
	KeyMessageID      = semconv.MessagingMessageIDKey
	KeyMessageSize    = semconv.MessagingMessageBodySizeKey // bytes
	KeyConsumerGroup  = semconv.MessagingConsumerGroupNameKey
	KeyPartition      = semconv.MessagingDestinationPartitionIDKey
	KeyClientInstance = semconv.MessagingClientIDKey
)

// Kinds of spans.
var (
	OperationChat        = semconv.GenAIOperationNameChat        // one request to a model
	OperationInvokeAgent = semconv.GenAIOperationNameInvokeAgent // one turn of an agent
	OperationExecuteTool = semconv.GenAIOperationNameExecuteTool // one tool call
	MessagingSend        = semconv.MessagingOperationTypeSend
	MessagingProcess     = semconv.MessagingOperationTypeProcess
)

// SystemNATS is the messaging.system of the bus. The conventions lack a value for NATS; custom values are allowed.
var SystemNATS attribute.KeyValue = semconv.MessagingSystemKey.String("nats")
