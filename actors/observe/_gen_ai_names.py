"""Names of OpenTelemetry's conventions for generative AI.

Those in development are in a repository of their own since version 0.1.0:
https://github.com/open-telemetry/semantic-conventions-genai. Before, they were a part of the semantic conventions, last
of version 1.41.0. The package ``opentelemetry-semantic-conventions`` has the earlier ones only, as incubating.

Of the four breaking changes of 0.1.0, the limit on the predefined values of one attribute was not checked here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callboard.config import GenAiConventions

CURRENT: GenAiConventions = "0.1.0"
PREVIOUS: GenAiConventions = "1.41.0"

OPERATION = "gen_ai.operation.name"
INVOKE_WORKFLOW = "invoke_workflow"
INVOKE_AGENT = "invoke_agent"
CHAT = "chat"
EXECUTE_TOOL = "execute_tool"

CONVERSATION = "gen_ai.conversation.id"
AGENT = "gen_ai.agent.name"
AGENT_ID = "gen_ai.agent.id"
"""Until 1.41.0. It has to be stable, and no longer belongs to internal spans."""
WORKFLOW = "gen_ai.workflow.name"
"""Until 1.41.0. A workflow is now named as an agent is."""

PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
OUTPUT_TYPE = "gen_ai.output.type"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"

TOOL = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL = "gen_ai.tool.call.id"

PROVIDERS = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "google": "gcp.gemini",
    "google-cloud": "gcp.vertex_ai",
    "bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "azure-responses": "azure.ai.openai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""Kinds of provider that have another name in the conventions."""


def workflow_attributes(name: str, version: GenAiConventions) -> dict[str, str]:
    """Return the attributes of a workflow's span."""
    return {OPERATION: INVOKE_WORKFLOW, WORKFLOW if version == PREVIOUS else AGENT: name}


def agent_attributes(name: str, address: str, version: GenAiConventions) -> dict[str, str]:
    """Return the attributes of an agent's span, with its address."""
    return {OPERATION: INVOKE_AGENT, AGENT: name, AGENT_ID if version == PREVIOUS else "callboard.agent": address}
