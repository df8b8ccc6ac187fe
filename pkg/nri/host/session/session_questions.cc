// SPDX-License-Identifier: Apache-2.0
// The questions to a connected plugin.
#include <utility>

#include "pkg/nri/bounded_message.h"
#include "pkg/nri/host/session/plugin_session.h"

namespace resmgr::nri {

// Treats a missing method, despite a subscription to its event, as an answer without changes,
// except for a validator, whose answer is required.
template <typename Response>
StatusOr<Response> PluginSession::Decode(api::Event event, const Answer& answer) {
  Response response;
  if (answer.status().code() == StatusCode::kUnimplemented &&
      event != api::EVENT_VALIDATE_CONTAINER_ADJUSTMENT) {
    events_ &= ~BitOf(event);
    log_.Warn("plugin {} has subscribed to {} and has no method for it: it is not asked again",
              Label(), MethodOf(event));
    return response;
  }
  if (!answer.ok()) return answer.status();
  const Status decoded = DecodeMessage(*answer, response);
  if (decoded.ok()) return response;
  const Status why = Annotate(decoded, fmt::format("its answer to {}", MethodOf(event)));
  End(why);
  return Unavailable("{}", resmgr::Message(why));
}

template <typename Response>
void PluginSession::Ask(api::Event event, Question question, std::chrono::milliseconds timeout,
                        Done<Response> done) {
  if (queue_ == nullptr) return done(Unavailable("it has not registered"));
  if (shadow_ && !ended()) {
    // It is told only, since the plugin that it will replace still decides.
    question.tells = true;
    queue_->Ask(std::move(question), context_.options.sync_timeout, [](const Answer&) {});
    return done(Response());
  }
  // Its answer would come after all its other data, and calls would wait for that.
  if (Floods()) timeout = std::chrono::milliseconds(0);
  queue_->Ask(std::move(question), timeout,
              [this, event, done = std::move(done)](const Answer& answer) {
                done(Decode<Response>(event, answer));
              });
}

void PluginSession::Create(std::string request, std::chrono::milliseconds timeout,
                           Done<api::CreateContainerResponse> done) {
  Ask(api::EVENT_CREATE_CONTAINER,
      {.method = "CreateContainer", .payload = ttrpc::Share(std::move(request))}, timeout,
      std::move(done));
}

void PluginSession::Update(const api::UpdateContainerRequest& request,
                           std::chrono::milliseconds timeout,
                           Done<api::UpdateContainerResponse> done) {
  Ask(api::EVENT_UPDATE_CONTAINER,
      {.method = "UpdateContainer", .payload = ttrpc::Share(request.SerializeAsString())}, timeout,
      std::move(done));
}

void PluginSession::Stop(const api::StopContainerRequest& request,
                         std::chrono::milliseconds timeout, Done<api::StopContainerResponse> done) {
  Ask(api::EVENT_STOP_CONTAINER,
      {.method = "StopContainer",
       .payload = ttrpc::Share(request.SerializeAsString()),
       .tells = true},
      timeout, std::move(done));
}

void PluginSession::UpdatePod(const api::UpdatePodSandboxRequest& request,
                              std::chrono::milliseconds timeout,
                              Done<api::UpdatePodSandboxResponse> done) {
  Ask(api::EVENT_UPDATE_POD_SANDBOX,
      {.method = "UpdatePodSandbox", .payload = ttrpc::Share(request.SerializeAsString())}, timeout,
      std::move(done));
}

void PluginSession::Validate(const api::ValidateContainerAdjustmentRequest& request,
                             std::chrono::milliseconds timeout,
                             Done<api::ValidateContainerAdjustmentResponse> done) {
  Ask(api::EVENT_VALIDATE_CONTAINER_ADJUSTMENT,
      {.method = "ValidateContainerAdjustment",
       .payload = ttrpc::Share(request.SerializeAsString())},
      timeout, std::move(done));
}

void PluginSession::Notify(const api::StateChangeEvent& event, std::chrono::milliseconds timeout,
                           Done<api::Empty> done) {
  if (!forms_) return done(Unavailable("it has not registered"));
  Ask(event.event(), forms_->Make(event), timeout, std::move(done));
}

}  // namespace resmgr::nri
