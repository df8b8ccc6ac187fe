// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/kept_containers.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace resmgr {
namespace {

RuntimeContainer AsListed(std::string_view id, const SavedContainer& saved) {
  const SavedOrigin& origin = *saved.origin;
  RuntimeContainer listed;
  listed.id = ContainerId(id);
  listed.pod_id = origin.pod.id;
  listed.name = origin.container_name;
  listed.attempt = origin.attempt;
  listed.state = ContainerState::kRunning;
  if (origin.cpus) listed.resources.cpuset_cpus = origin.cpus->ToString();
  if (origin.mems) listed.resources.cpuset_mems = origin.mems->ToString();
  listed.resources.cpu_shares = saved.placement.cpu_shares;
  listed.resources.cpu_quota = saved.placement.cpu_quota;
  listed.resources.cpu_period = saved.placement.cpu_period;
  listed.kept = true;
  return listed;
}

void AddNotes(const ContainerStore& store, const StateWriter& state_writer,
              RuntimeInventory& inventory) {
  std::set<PodSandboxId> added;
  state_writer.ForEach([&](std::string_view id, const SavedContainer& saved) {
    if (!saved.origin || !inventory.unclear.runtimes.contains(saved.origin->runtime)) return;
    if (store.FindById(ContainerId(id)) != nullptr) return;
    const Pod& pod = saved.origin->pod;
    if (store.pods().find(pod.id) == store.pods().end() && added.insert(pod.id).second) {
      inventory.pods.push_back(pod);
      inventory.unclear.pods.insert(pod.id);
    }
    inventory.containers.push_back(AsListed(id, saved));
    inventory.unclear.containers.insert(ContainerId(id));
  });
}

}  // namespace

void AddKept(const ContainerStore& store, const StateWriter& state_writer, bool first,
             RuntimeInventory& inventory) {
  for (const auto& [key, record] : store.containers()) {
    const Pod& pod = record->pod->pod;
    if (!record->kept || !inventory.unclear.runtimes.contains(std::string(store.RuntimeOf(pod)))) {
      continue;
    }
    inventory.unclear.containers.insert(record->container.id);
    inventory.unclear.pods.insert(pod.id);
  }
  if (first) AddNotes(store, state_writer, inventory);
}

}  // namespace resmgr
