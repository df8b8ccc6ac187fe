// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/stage/plugin_updates.h"

#include <utility>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/log/not_logged.h"
#include "pkg/nri/host/merge/reply_edits.h"

namespace resmgr::nri {
namespace {

ResourceValues NumbersOf(const LinuxResources& resources) {
  return {.cpu_shares = resources.cpu_shares,
          .cpu_quota = resources.cpu_quota,
          .cpu_period = resources.cpu_period};
}

// The container's resources as they are when the runtime has answered all former updates, and if
// those with an unclear outcome took effect. Values of an update that it refuses in the end are
// sent again by this one.
api::LinuxResources ExpectedResources(const HostContainer& container) {
  api::LinuxResources resources = container.message->linux().resources();
  if (container.unclear != nullptr) OverlayResources(container.unclear->values, resources);
  for (const auto& each : container.changing)
    if (const auto change = each.lock()) OverlayResources(*change, resources);
  return resources;
}

StatusOr<std::vector<std::string>> CheckAndLeaveOut(const RuntimeTraits& traits,
                                                    const UnsupportedPolicy& policy,
                                                    api::LinuxResources& wanted) {
  RESMGR_RETURN_IF_ERROR(CheckNumbers(wanted));
  return LeaveOutShortfalls(traits, policy, wanted);
}

}  // namespace

// The updates of one Apply.
struct PluginUpdates::Batch {
  void End(const api::ContainerUpdate& update, bool failure) {
    if (failure && !update.ignore_failure()) failed.push_back(update);
    if (--missing == 0) done(failed);
  }

  size_t missing = 0;
  std::function<void(const List&)> done;
  List failed{};
};

PluginUpdates::PluginUpdates(RuntimeAccess& runtime, HostView& view,
                             const UnsupportedPolicy& unsupported, Hooks hooks)
    : runtime_(runtime),
      view_(view),
      unsupported_(unsupported),
      hooks_(std::move(hooks)),
      log_(GetLogger("nri/host")),
      limit_(/*burst=*/10, std::chrono::minutes(1)) {}

void PluginUpdates::Normalize(
    google::protobuf::RepeatedPtrField<api::ContainerUpdate>& updates) const {
  google::protobuf::RepeatedPtrField<api::ContainerUpdate> known;
  for (api::ContainerUpdate& update : updates) {
    const HostContainerPtr container = view_.Find(update.container_id());
    if (container == nullptr) continue;
    update.set_container_id(container->alias);
    *known.Add() = std::move(update);
  }
  updates.Swap(&known);
}

void PluginUpdates::Apply(const List& updates, std::function<void(const List&)> done) {
  if (updates.empty()) return done({});
  const auto batch =
      std::make_shared<Batch>(Batch{.missing = updates.size(), .done = std::move(done)});
  for (const api::ContainerUpdate& update : updates)
    ApplyOne(update, batch);
}

void PluginUpdates::ApplyOne(const api::ContainerUpdate& update,
                             const std::shared_ptr<Batch>& batch) {
  const HostContainerPtr container = view_.Find(update.container_id());
  if (container == nullptr) return batch->End(update, false);
  if (container->creating() || container->message->state() == api::CONTAINER_STOPPED) {
    return batch->End(update, true);
  }
  api::LinuxResources wanted = update.linux().resources();
  const bool owned = hooks_.placement_is_owned();
  if (owned && LeaveOutPlacement(wanted)) hooks_.dropped_placement();
  const auto left_out = CheckAndLeaveOut(traits_, unsupported_, wanted);
  if (!left_out.ok()) {
    NoteFailure(*container, left_out.status());
    return batch->End(update, true);
  }
  hooks_.left_out(*container, *left_out);
  if (!AnySet(wanted)) return batch->End(update, false);
  // All known values are sent, as a kubelet does, since a runtime may reset values that an update
  // leaves out. Exception: if the policy owns the placement, the stored CPU values are not sent.
  api::LinuxResources whole = ExpectedResources(*container);
  if (owned) {
    LeaveOutPlacement(whole);
    whole.clear_cpu();
  }
  OverlayResources(wanted, whole);
  const ResourceChange change = ToResourceChange(whole, traits_);
  const ResourceValues numbers = NumbersOf(change.resources);
  Tell(container->id, numbers, false);
  const auto wanted_now = std::make_shared<const api::LinuxResources>(std::move(wanted));
  container->NoteChange(wanted_now);
  const auto done =
      lifetime_.Guard([this, container, wanted_now, update, numbers, batch](const Status& status) {
        const Outcome outcome{.known = true, .code = static_cast<int>(status.code())};
        view_.EndChange(*container, wanted_now, outcome.kind());
        if (status.ok()) {
          Tell(container->id, numbers, true);
        } else {
          NoteFailure(*container, status);
        }
        batch->End(update, !status.ok());
      });
  runtime_.UpdateContainer(container->id, change, done);
}

void PluginUpdates::Tell(const ContainerId& id, const ResourceValues& values, bool accepted) {
  if (hooks_.set) hooks_.set(id, values, accepted);
}

void PluginUpdates::NoteFailure(const HostContainer& container, const Status& why) {
  const auto suppressed = limit_.Pass(RateLimit::Clock::now());
  if (!suppressed) return;
  log_.Warn("container {} is not changed as NRI plugins want it: {}{}",
            Printable(container.id.value()), Printable(Describe(why)), NotLogged(*suppressed));
}

StatusOr<std::vector<std::string>> LeaveOutShortfalls(const RuntimeTraits& traits,
                                                      const UnsupportedPolicy& policy,
                                                      api::LinuxResources& resources) {
  const std::vector<Shortfall> shortfalls = ShortfallsOf(resources, traits, /*update=*/true);
  std::vector<std::string> left_out;
  for (const Shortfall& shortfall : shortfalls) {
    std::string text =
        fmt::format("an NRI plugin wants to set {}: {}", Shown(shortfall), shortfall.why);
    if (policy.Of(shortfall) == FailurePolicy::kFail) {
      return MakeStatus(StatusCode::kFailedPrecondition, std::move(text));
    }
    left_out.push_back(std::move(text));
  }
  for (const Shortfall& shortfall : shortfalls)
    ClearField(shortfall.field, resources);
  return left_out;
}

}  // namespace resmgr::nri
