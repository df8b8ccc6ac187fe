// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/config_service.h"

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "pkg/api/config.pb.h"
#include "pkg/base/json.h"
#include "pkg/base/terminal.h"
#include "pkg/base/utf8.h"

namespace resmgr {
namespace {

constexpr const char* kAgent = "agent";
// Limit in bytes of a refusal's reason, which an agent may write into an annotation of the node.
constexpr size_t kMaxError = 8192;

// The text must be UTF-8: otherwise the client could not decode the reply at all.
std::string ErrorText(const Status& status) {
  return Utf8Cut(PrintableLines(Message(status)), kMaxError);
}

StatusOr<DeliveredConfig> Decode(const std::string& message) {
  v1::SetConfigRequest request;
  if (!request.ParseFromString(message)) {
    return InvalidArgument("not a v1.SetConfigRequest, or its texts are not UTF-8");
  }
  DeliveredConfig source;
  source.name = kAgent;
  source.data = {request.config().begin(), request.config().end()};
  return source;
}

void SetConfig(Configurator& configurator, std::string message, const UnaryServer::Reply& reply) {
  if (const Status size = CheckMessageSize(message); !size.ok()) return reply(size);
  configurator.Deliver(
      kAgent, [message = std::move(message)] { return Decode(message); },
      [reply](const Status& status) {
        v1::SetConfigReply answer;
        if (!status.ok()) answer.set_error(ErrorText(status));
        reply(answer.SerializeAsString());
      });
}

void SetAdjustment(const std::string& message, const UnaryServer::Reply& reply) {
  v1::SetAdjustmentRequest request;
  if (!request.ParseFromString(message)) {
    reply(InvalidArgument("not a v1.SetAdjustmentRequest"));
    return;
  }
  v1::SetAdjustmentReply answer;
  const auto adjustments = ParseJson(request.adjustment());
  if (adjustments && adjustments->is_object()) {
    for (const auto& [name, adjustment] : adjustments->items())
      (*answer.mutable_errors())[name] = "adjustments are not supported";
  } else if (!request.adjustment().empty()) {
    reply(InvalidArgument("the adjustments are not a JSON object"));
    return;
  }
  reply(answer.SerializeAsString());
}

}  // namespace

UnaryServer::Methods ConfigMethods(const NodeView& node) {
  return {
      {"/v1.Config/SetConfig",
       [&configurator = node.configurator](std::string message, const UnaryServer::Reply& reply) {
         SetConfig(configurator, std::move(message), reply);
       }},
      {"/v1.Config/SetAdjustment",
       [](const std::string& message, const UnaryServer::Reply& reply) {
         SetAdjustment(message, reply);
       }},
  };
}

}  // namespace resmgr
