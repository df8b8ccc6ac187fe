// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/nri_hosting.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/nri/host/mapping/resource_mapping.h"
#include "pkg/nri/host/stage/host_config.h"

namespace resmgr {
namespace {

constexpr std::chrono::milliseconds kHostRetry{1'000};

nri::HostOptions WithCounters(nri::HostOptions options, Metrics* metrics) {
  options.metrics = metrics;
  return options;
}

}  // namespace

NriHosting::NriHosting(const DoorContext& context, std::unique_ptr<RuntimeAccess> runtime,
                       Inventory& inventory, NriHostingOptions options)
    : context_(context),
      cgroup_v2_(options.cgroup_v2),
      socket_(options.host.socket),
      required_(options.stage.required),
      log_(GetLogger("nri/host")),
      runtime_(std::move(runtime)),
      stage_({.loop = context.loop,
              .runtime = *runtime_,
              .inventory = inventory,
              .pipeline = context.pipeline,
              .metrics = context.metrics},
             std::move(options.stage)),
      host_(context.loop, stage_, WithCounters(std::move(options.host), context.metrics)) {
  context_.pipeline.Add(stage_);
}

NriHosting::~NriHosting() {
  context_.pipeline.Remove(stage_);
  stage_.End();
}

void NriHosting::Start() {
  stage_.Start();
  RuntimeConnected();
}

// Several runtimes that connect in one turn of the loop cause one question.
void NriHosting::RuntimeConnected() {
  ask_ = context_.loop.After(std::chrono::milliseconds(0), [this] { AskVersion(); });
}

void NriHosting::Configure(const NriHostConfig& config) {
  nri::NriStageOptions stage = nri::StageOptionsOf(config);
  required_ = stage.required;
  stage_.Configure(std::move(stage));
  host_.Configure(nri::HostOptionsOf(config));
}

std::vector<Problem> NriHosting::problems() const {
  std::vector<Problem> problems;
  if (unserved_) problems.push_back(unserved_->ProblemOf(socket_));
  const std::vector<PluginView> known = plugins();
  for (const std::string& name : required_) {
    const bool listed = std::ranges::any_of(known, [&name](const PluginView& plugin) {
      return name == plugin.name || name == fmt::format("{}-{}", plugin.index, plugin.name);
    });
    if (listed) continue;
    problems.push_back({.kind = "plugin",
                        .message = fmt::format("the nri plugin {} is required and was never "
                                               "connected: no container is created until it is",
                                               name),
                        .objects = {name},
                        .next = "start the plugin, or set its Required to false"});
  }
  return problems;
}

std::vector<SeenContainer> NriHosting::seen() const {
  std::vector<SeenContainer> all;
  for (const nri::HostContainerPtr& container : stage_.view().Containers()) {
    if (container->creating()) continue;
    const auto& pod = *container->pod->message;
    SeenContainer& seen = all.emplace_back();
    seen.pod.id = PodSandboxId(pod.id());
    seen.pod.name = pod.name();
    seen.pod.namespace_name = pod.namespace_();
    const std::map<std::string, std::string> labels(pod.labels().begin(), pod.labels().end());
    seen.pod.labels = StringMap(labels.begin(), labels.end());
    seen.container.id = container->id;
    seen.container.pod_id = seen.pod.id;
    seen.container.name = container->message->name();
    seen.container.requested =
        nri::ToResourceChange(container->message->linux().resources()).resources;
  }
  return all;
}

void NriHosting::AskVersion() {
  runtime_->AskVersion([this](const StatusOr<RuntimeAccess::Version>& version) {
    if (!version.ok()) {
      if (!knows_runtime_) NoteUnserved(version.status());
      ask_ = context_.loop.After(kHostRetry, [this] { AskVersion(); });
      return;
    }
    host_.SetRuntime({.name = version->name, .version = version->version});
    stage_.SetTraits(nri::TraitsOf(version->name, version->version, cgroup_v2_), version->handlers);
    if (!std::exchange(knows_runtime_, true)) stage_.WhenReady([this] { Serve(); });
  });
}

void NriHosting::Serve() {
  const Status served = host_.Start();
  if (served.ok()) return unserved_.reset();
  NoteUnserved(served);
  serve_ = context_.loop.After(kHostRetry, [this] { Serve(); });
}

void NriHosting::NoteUnserved(const Status& why) {
  if (!std::exchange(told_, true))
    log_.Warn("NRI plugins are not served yet: {}", Printable(Describe(why)));
  if (!unserved_) unserved_ = Unserved{.since = std::chrono::system_clock::now()};
  unserved_->why = why;
}

}  // namespace resmgr
