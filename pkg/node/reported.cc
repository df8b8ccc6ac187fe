// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/reported.h"

#include <string_view>

#include <nlohmann/json.hpp>

#include "pkg/api/agent.pb.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"

namespace resmgr {
namespace {

using Json = nlohmann::json;

// Annotations of the node for the report. The agent's annotations about a ConfigMap
// (agent/README.md) are not enough: cri-resmgr-ctl, SIGHUP and a restart may change the
// configuration without a ConfigMap.
constexpr std::string_view kPolicyAnnotation = "cri-resource-manager.intel.com/policy";
constexpr std::string_view kSourceAnnotation = "cri-resource-manager.intel.com/policy-source";
constexpr std::string_view kLossesAnnotation = "cri-resource-manager.intel.com/policy-losses";

Json AnnotationsOf(const NodeReport& report) {
  Json annotations;
  annotations[std::string(kPolicyAnnotation)] = report.policy;
  annotations[std::string(kSourceAnnotation)] = Printable(report.source);
  // Written even if empty, to remove the losses of a former change.
  annotations[std::string(kLossesAnnotation)] = report.losses;
  return annotations;
}

void Add(v1::PatchNodeRequest& request, const Json::json_pointer& path, const Json& value) {
  v1::JsonPatch& patch = *request.add_patches();
  patch.set_op("add");
  patch.set_path(path.to_string());
  patch.set_value(JsonText(value));
}

// Whether the agent will refuse this for long.
bool IsRefusal(const Status& status) {
  return status.code() == StatusCode::kPermissionDenied ||
         status.code() == StatusCode::kInvalidArgument ||
         status.code() == StatusCode::kUnimplemented;
}

}  // namespace

NodePublisher::NodePublisher(EventLoop& loop, h2::FlushQueue& flushes, const std::string& socket,
                             const AgentCalls::Times& times,
                             std::chrono::milliseconds refusal_pause)
    : loop_(loop),
      log_(GetLogger("node")),
      refusal_pause_(refusal_pause),
      calls_(
          loop, flushes,
          {.socket = socket,
           .times = times,
           .complaint = fmt::format(
               "cannot report the policy on the node yet, retrying with the agent at {}", socket),
           .begin = [this] { Send(); },
           .lost = [this](const Status&) { settled_.reset(); }}) {}

void NodePublisher::Show(NodeReport report) {
  wanted_ = std::move(report);
  // An agent may just have connected and delivered the change, so an earlier failure is not a
  // reason to wait.
  calls_.ForgetFailures();
  calls_.Begin();
}

void NodePublisher::Send() {
  if (settled_ == wanted_) return;
  calls_.Call("/v1.Agent/HealthCheck", v1::HealthCheckRequest().SerializeAsString(),
              [this](const StatusOr<std::string>& reply) { OnHealth(reply); });
}

void NodePublisher::OnHealth(const StatusOr<std::string>& reply) {
  v1::HealthCheckReply health;
  if (!reply.ok()) {
    calls_.Failed(reply.status());
  } else if (!health.ParseFromString(*reply)) {
    calls_.Failed(Unavailable("the answer is not a v1.HealthCheckReply"));
  } else if (!health.error().empty()) {
    calls_.Failed(FailedPrecondition("the agent is not well: {}", Printable(health.error())));
  } else {
    Patch(Way::kEachKey);
  }
}

void NodePublisher::Patch(Way way) {
  const Json::json_pointer path("/metadata/annotations");
  const Json annotations = AnnotationsOf(wanted_);
  v1::PatchNodeRequest request;
  if (way == Way::kAllAtOnce) {
    Add(request, path, annotations);
  } else {
    for (const auto& [key, value] : annotations.items())
      Add(request, path / key, value);
  }
  calls_.Call("/v1.Agent/PatchNode", request.SerializeAsString(),
              [this, report = wanted_, way](const StatusOr<std::string>& reply) {
                OnPatched(report, way, reply.status());
              });
}

void NodePublisher::OnPatched(const NodeReport& report, Way way, const Status& status) {
  // A key cannot be added if the node has no annotations yet.
  if (status.code() == StatusCode::kInvalidArgument && way == Way::kEachKey)
    return Patch(Way::kAllAtOnce);
  // Writing all annotations at once would remove those that the node got meanwhile: the agent
  // refuses this, and the patch is tried again.
  const bool overtaken = status.code() == StatusCode::kPermissionDenied && way == Way::kAllAtOnce;
  if (overtaken || (!status.ok() && !IsRefusal(status))) return calls_.Failed(status);
  again_.reset();
  if (status.ok()) {
    log_.Info("the node shows policy {}, configured by {}", report.policy, report.source);
  } else {
    if (refusal_ != status)
      log_.Warn("the agent refuses to report the policy on the node: {}",
                Printable(Message(status)));
    again_ = loop_.After(refusal_pause_, [this] {
      settled_.reset();
      calls_.Begin();
    });
  }
  refusal_ = status;
  settled_ = report;
  calls_.Done(true);
}

void Reported::NoteConfiguration(const Configurator& configurator) {
  publisher.Show({.policy = configurator.current().policy.active,
                  .source = configurator.source(),
                  .losses = configurator.losses()});
  cpus.NoteConfiguration();
  scheduler.NoteConfiguration(configurator.current().nrt);
}

std::unique_ptr<Reported> MakeReported(const NodeOptions& options, EventLoop& loop,
                                       h2::FlushQueue& flushes, const Machine& machine,
                                       Counted* counted) {
  if (options.agent_socket.empty()) return nullptr;
  AgentReports::Options reports;
  if (counted != nullptr) {
    reports.on_events = [&node = counted->node](size_t taken, size_t lost) {
      node.PodEvents(taken, lost);
    };
  }
  return std::make_unique<Reported>(loop, flushes, options.agent_socket, machine,
                                    std::move(reports),
                                    counted == nullptr ? nullptr : &counted->node);
}

}  // namespace resmgr
