// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/scheduler_watch.h"

#include <algorithm>
#include <utility>

#include "pkg/api/node_reports.pb.h"

namespace resmgr {
namespace {

using ViewClock = std::chrono::steady_clock;

// The pause after a view, as a multiple of the time that the view took (tens of milliseconds on a
// large machine).
constexpr int kPauseForTime = 50;
constexpr std::chrono::seconds kLongestPause{30};

}  // namespace

void SchedulerWatch::NoteConfiguration(const NrtConfig& config) {
  config_ = config;
  // Views cost the loop time, so those for later configurations are spaced out like others.
  config_.publish&& looked_ ? Note() : Look();
}

void SchedulerWatch::Note() {
  if (timer_ != nullptr || host_ == nullptr || !config_.publish) return;
  std::chrono::milliseconds wait = options_.gather;
  if (looked_) {
    const auto due = *looked_ + pause_ - options_.loop.Now();
    wait = std::max(wait, std::chrono::ceil<std::chrono::milliseconds>(due));
  }
  LookAfter(wait);
}

void SchedulerWatch::LookAfter(std::chrono::milliseconds wait) {
  timer_ = options_.loop.After(wait, [this] { Look(); });
}

void SchedulerWatch::Look() {
  timer_.reset();
  if (host_ == nullptr) return;
  const ResourceManager* const manager = host_->manager();
  if (manager == nullptr || !config_.publish) {
    told_.reset();
    if (!std::exchange(told_none_, true)) options_.tell(nullptr);
    return;
  }
  if (!manager->synchronizer().ready()) return LookAfter(options_.period);
  const ViewClock::time_point start = ViewClock::now();
  SchedulerView view = options_.empty ? SchedulerView() : Make(*manager);
  looked_ = options_.loop.Now();
  told_none_ = false;
  if (options_.repeats || !told_ || !told_->SameContent(view)) {
    view.sequence = ++sequence_;
    told_ = std::move(view);
    options_.tell(&*told_);
  }
  pause_ = std::clamp<ViewClock::duration>(
      kPauseForTime * (ViewClock::now() - start), options_.period,
      std::max<ViewClock::duration>(options_.period, kLongestPause));
}

SchedulerView SchedulerWatch::Make(const ResourceManager& manager) {
  const ViewClock::time_point start = ViewClock::now();
  SchedulerView view = MakeSchedulerView(options_.machine, manager.policy(), manager.snapshot(),
                                         config_.alignment == NrtAlignment::kRefuse);
  if (config_.pools) view.pools = ViewPools(manager.policy(), manager.snapshot());
  if (options_.metrics != nullptr) options_.metrics->SchedulerViewMade(ViewClock::now() - start);
  return view;
}

std::string TopologyReport(const SchedulerView* view) {
  cri_resmgr::v1::ShowTopologyRequest request;
  request.set_absent(view == nullptr);
  if (view == nullptr) return request.SerializeAsString();
  request.set_refuses(view->refuses);
  for (const ViewZone& zone : view->zones) {
    cri_resmgr::v1::TopologyZone& message = *request.add_zones();
    message.set_numa_id(zone.numa_id);
    for (const int distance : zone.distances)
      message.add_distances(distance);
    for (const ViewAmount& amount : zone.amounts) {
      cri_resmgr::v1::TopologyAmount& told = *message.add_amounts();
      told.set_name(amount.name);
      told.set_capacity(amount.capacity);
      told.set_allocatable(amount.allocatable);
      told.set_available(amount.available);
    }
    message.set_cpus(zone.cpus.ToString());
    message.set_exclusive(zone.exclusive.ToString());
  }
  for (const ViewPool& pool : view->pools) {
    cri_resmgr::v1::TopologyPool& message = *request.add_pools();
    message.set_name(pool.name);
    message.set_cpus(pool.cpus.ToString());
    message.set_exclusive(pool.exclusive.ToString());
  }
  for (const PodName& pod : view->pods) {
    cri_resmgr::v1::TopologyPod& message = *request.add_pods();
    message.set_pod_namespace(pod.namespace_name);
    message.set_pod(pod.name);
  }
  return request.SerializeAsString();
}

}  // namespace resmgr
