// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/inventory_sync.h"

#include <set>
#include <string>
#include <utility>

#include "pkg/nri/host/container_view.h"
#include "pkg/nri/host/id_aliases.h"
#include "pkg/nri/host/pod_view.h"

namespace resmgr::nri {

InventorySync::InventorySync(EventLoop& loop, RuntimeAccess& runtime, HostInventory& inventory,
                             HostEvents& events, Options options)
    : loop_(loop),
      runtime_(runtime),
      inventory_(inventory),
      events_(events),
      options_(options),
      log_(GetLogger("nri/host")) {}

void InventorySync::Refresh() {
  if (asking_) {
    again_ = true;
  } else if (retry_ == nullptr) {
    Ask();
  }
}

void InventorySync::AfterRefresh(std::function<void(const Status&)> done) {
  waiting_.push_back(std::move(done));
  Refresh();
}

void InventorySync::Ask() {
  retry_.reset();
  asking_ = true;
  again_ = false;
  served_ = std::exchange(waiting_, {});
  pods_before_ = inventory_.Pods();
  containers_before_ = inventory_.Containers();
  std::erase_if(containers_before_,
                [](const HostContainerPtr& container) { return container->creating(); });
  runtime_.InspectAll(lifetime_.Guard(
      [this](const StatusOr<RuntimeAccess::Everything>& everything) { Take(everything); }));
}

void InventorySync::Take(const StatusOr<RuntimeAccess::Everything>& everything) {
  asking_ = false;
  if (everything.ok()) {
    TakePods(everything->sandboxes);
    TakeContainers(everything->containers);
    DropMissing(*everything);
    ready_ = true;
  }
  pods_before_.clear();
  containers_before_.clear();
  if (!everything.ok()) {
    log_.Debug("the runtime's containers are not known yet: {}", Describe(everything.status()));
    retry_ = loop_.After(options_.retry, [this] { Ask(); });
  }
  for (const auto& done : std::exchange(served_, {}))
    done(everything.status());
  if (again_ && !asking_ && retry_ == nullptr) Ask();
}

void InventorySync::InTurn(HostPod& pod, std::function<void(Turns::Turn)> begin) {
  pod.turns.Take(
      lifetime_.Guard([begin = std::move(begin)](Turns::Turn turn) { begin(std::move(turn)); }));
}

void InventorySync::TakePods(const std::vector<SandboxFacts>& sandboxes) {
  for (const SandboxFacts& facts : sandboxes) {
    const HostPodPtr known = inventory_.FindPod(facts.pod.id.value());
    if (known == nullptr) {
      api::PodSandbox pod = ToPodSandbox(facts.pod);
      AddFacts(facts, pod);
      inventory_.AddPod(std::move(pod), facts.ready);
    } else if (known->ready && !facts.ready) {
      InTurn(*known, [this, known](Turns::Turn turn) {
        events_.StopPod(known, events_.NewBudget(), [turn = std::move(turn)](const Status&) {});
      });
    }
  }
}

void InventorySync::TakeContainers(const std::vector<ContainerFacts>& containers) {
  for (const ContainerFacts& facts : containers) {
    const HostContainerPtr known = inventory_.Find(facts.container.id.value());
    if (known == nullptr) {
      Add(facts);
      continue;
    }
    const bool ended = facts.container.state == ContainerState::kExited;
    AddFacts(facts, known->message.Edit());
    if (!ended || known->stop_told) continue;
    InTurn(*known->pod, [this, known](Turns::Turn turn) {
      events_.Stop(known, events_.NewBudget(), [turn = std::move(turn)](const Status&) {});
    });
  }
}

void InventorySync::Add(const ContainerFacts& facts) {
  const RuntimeContainer& listed = facts.container;
  const HostPodPtr pod = inventory_.FindPod(listed.pod_id.value());
  if (pod == nullptr) return;
  // Found by its alias: the runtime has created it, and the reply is under way or lost.
  HostContainerPtr container = inventory_.Find(AliasOf(listed.pod_id, listed.name, listed.attempt));
  if (container != nullptr && container->creating()) {
    AddFacts(facts, container->message.Edit());
  } else {
    container = inventory_.Begin(pod, ToContainer(facts), listed.attempt);
  }
  inventory_.SetId(container, listed.id);
}

void InventorySync::DropMissing(const RuntimeAccess::Everything& everything) {
  std::set<std::string_view> ids(everything.unlisted.begin(), everything.unlisted.end());
  for (const SandboxFacts& facts : everything.sandboxes)
    ids.insert(facts.pod.id.value());
  for (const ContainerFacts& facts : everything.containers)
    ids.insert(facts.container.id.value());
  for (const HostContainerPtr& container : containers_before_) {
    if (ids.contains(container->id.value())) continue;
    InTurn(*container->pod, [this, container](Turns::Turn turn) {
      events_.Remove(container, events_.NewBudget(), [turn = std::move(turn)](const Status&) {});
    });
  }
  for (const HostPodPtr& pod : pods_before_) {
    if (ids.contains(pod->message->id())) continue;
    InTurn(*pod, [this, pod](Turns::Turn turn) {
      events_.RemovePod(pod, events_.NewBudget(), [turn = std::move(turn)](const Status&) {});
    });
  }
}

}  // namespace resmgr::nri
