// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/creation_watch.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "pkg/audit/comparison.h"
#include "pkg/resmgr/applied_resources.h"

namespace resmgr {

namespace {

constexpr int kMostLooks = 20;

}  // namespace

struct CreationWatch::Look {
  std::vector<Subject> subjects;
  std::map<ContainerKey, CgroupValues> read{};  // containers with a cgroup by now
  std::map<ContainerId, ResourceValues> reported{};
};

CreationWatch::CreationWatch(Options options)
    : options_(std::move(options)),
      reading_(options_.loop, "creation-watch", std::chrono::milliseconds(0)) {}

void CreationWatch::OnInForce(const Act& act, const Place& /*place*/) {
  if (!on_ || act.container.state != ContainerState::kCreated) return;
  if (!act.container.placement.cpus || created_.size() >= kMost) return;
  created_.try_emplace(act.container.key, 0);
  if (timer_ == nullptr) timer_ = options_.loop.After(options_.pause, [this] { Begin(); });
}

// Takes the containers to look at, with their decided CPUs and memory nodes; numbers such as the
// quota may come from other stages, too.
std::vector<CreationWatch::Subject> CreationWatch::TakeSubjects(const ResourceManager& manager) {
  std::vector<Subject> subjects;
  for (const auto& [key, looks] : std::exchange(created_, {})) {
    const Container* const container = manager.snapshot().FindContainer(key);
    if (container == nullptr || container->state == ContainerState::kExited) continue;
    // Only running containers are compared. Clients start a container soon after its creation, or
    // not at all, so a few looks are enough.
    if (container->state == ContainerState::kCreated) {
      if (looks < kMostLooks) created_.emplace(key, looks + 1);
      continue;
    }
    const Pod* const pod = manager.snapshot().FindPod(container->pod_id);
    // A change of the container is under way: the next audit compares it.
    if (pod == nullptr || !manager.Settled(key)) continue;
    subjects.push_back({.key = key,
                        .id = container->id,
                        .cgroup_parent = pod->cgroup_parent,
                        .decided = {.cpus = container->placement.EnforcedCpus(),
                                    .mems = container->placement.mems}});
  }
  return subjects;
}

void CreationWatch::Begin() {
  timer_.reset();
  ResourceManager* const manager = options_.manager();
  if (manager == nullptr || !manager->synchronizer().ready()) return created_.clear();
  // Replaces an earlier look that has not ended, which is given up.
  look_ = std::make_shared<Look>(Look{.subjects = TakeSubjects(*manager)});
  if (!created_.empty()) timer_ = options_.loop.After(options_.pause, [this] { Begin(); });
  if (look_->subjects.empty()) return;
  const Status begun =
      reading_.Run([this, weak = std::weak_ptr<Look>(look_), cgroups = options_.cgroups,
                    subjects = look_->subjects]() -> EventLoop::Task {
        auto read = std::make_shared<std::map<ContainerKey, CgroupValues>>();
        // The limits tell cgroups that cannot have a cpuset from those that sending the decision
        // again repairs.
        CpusetLimits limits = cgroups.Limits();
        for (const Subject& subject : subjects) {
          auto values = cgroups.Read(subject.cgroup_parent, subject.id.value(), &limits);
          if (values.ok()) read->emplace(subject.key, *std::move(values));
        }
        return [this, weak, read] {
          const std::shared_ptr<Look> look = weak.lock();
          if (look == nullptr || look != look_) return;
          look->read = std::move(*read);
          AskForRest(look);
        };
      });
  if (!begun.ok()) AskForRest(look_);
}

// Asks the runtime about containers whose cgroup could not be read: it may be made only at the
// start, or be invisible from here. Listing containers costs the runtime more than reading cgroups.
void CreationWatch::AskForRest(const std::shared_ptr<Look>& look) {
  ResourceManager* const manager = options_.manager();
  if (manager == nullptr) return;
  std::set<ContainerId> unread;
  for (const Subject& subject : look->subjects)
    if (!look->read.contains(subject.key)) unread.insert(subject.id);
  if (unread.empty()) return End(*look);
  manager->AskRuntime(
      [this, weak = std::weak_ptr<Look>(look),
       unread](const StatusOr<RuntimeInventory>& inventory) {
        const std::shared_ptr<Look> asked = weak.lock();
        if (asked == nullptr || asked != look_) return;
        if (inventory.ok()) {
          for (const RuntimeContainer& container : inventory->containers) {
            if (unread.contains(container.id) &&
                !inventory->unclear.containers.contains(container.id))
              asked->reported.emplace(container.id, ReportedResources(container.resources));
          }
        }
        End(*asked);
      },
      [unread](const ContainerId& id) { return unread.contains(id); });
}

void CreationWatch::End(Look& look) {
  const std::shared_ptr<Look> ended = std::exchange(look_, nullptr);
  ResourceManager* const manager = options_.manager();
  if (manager == nullptr) return;
  const bool drifted = std::ranges::any_of(look.subjects, [&](const Subject& subject) {
    const Container* const now = manager->snapshot().FindContainer(subject.key);
    // If another manager has become active meanwhile, the key may be that of another container.
    if (now == nullptr || now->id != subject.id || !manager->Settled(subject.key)) return false;
    if (now->placement.EnforcedCpus() != subject.decided.cpus) return false;
    const auto read = look.read.find(subject.key);
    const auto reported = look.reported.find(subject.id);
    // Drifts that a repair cannot remove, such as CPUs that a cgroup above withholds, do not count.
    return (read != look.read.end() &&
            std::ranges::any_of(CompareCgroup(subject.decided, read->second), CanBeMended)) ||
           (reported != look.reported.end() &&
            std::ranges::any_of(CompareReport(subject.decided, reported->second), CanBeMended));
  });
  if (drifted) options_.drifted();
}

}  // namespace resmgr
