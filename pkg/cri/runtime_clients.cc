// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/runtime_clients.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace resmgr {

namespace {

using Kind = IdOwners::Kind;

template <typename Values>
std::vector<std::string_view> IdsIn(const Values& values) {
  std::vector<std::string_view> ids;
  ids.reserve(values.size());
  for (const auto& value : values)
    ids.push_back(value.id.value());
  return ids;
}

}  // namespace

// One run of ListAll.
struct RuntimeClients::Listing {
  std::function<void(StatusOr<RuntimeInventory>)> done;
  IdOwners::ListBegin begin;
  // The result of each client; nullopt until it has answered or is given up.
  std::vector<std::optional<StatusOr<RuntimeInventory>>> answers;
  EventLoop::HandlePtr grace{};
  bool over = false;

  size_t left() const {
    return static_cast<size_t>(
        std::ranges::count_if(answers, [](const auto& answer) { return !answer.has_value(); }));
  }
};

RuntimeClients::RuntimeClients(EventLoop& loop, Backends& backends,
                               std::vector<RuntimeClient*> clients, Events events)
    : loop_(loop),
      backends_(backends),
      clients_(std::move(clients)),
      events_(std::move(events)),
      connections_(clients_.size()) {}

void RuntimeClients::OnConnected(std::span<const size_t> clients) {
  const bool first = connected_.empty();
  for (const size_t client : clients) {
    connected_.insert(client);
    ++connections_[client].made;
  }
  first ? events_.connected() : events_.joined();
}

void RuntimeClients::OnDisconnected(size_t client) {
  if (connected_.erase(client) > 0 && connected_.empty()) events_.disconnected();
}

void RuntimeClients::UpdateContainer(const ContainerId& id, const ResourceValues& adjustment,
                                     std::function<void(Status)> done) {
  const auto owner = backends_.owners().Find(Kind::kContainer, id.value());
  if (owner.ok() && *owner) {
    clients_[**owner]->UpdateContainer(id, adjustment, std::move(done));
    return;
  }
  loop_.Post([done = std::move(done), id] {
    done(Unavailable("it is not known which runtime has container {}", id.value()));
  });
}

void RuntimeClients::ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) {
  const auto listing =
      std::make_shared<Listing>(Listing{.done = std::move(done),
                                        .begin = backends_.owners().BeginList(),
                                        .answers = decltype(Listing::answers)(clients_.size())});
  for (size_t i = 0; i < clients_.size(); ++i) {
    if (connections_[i].hangs) Probe(i);
    List(i, known, [this, listing, i](StatusOr<RuntimeInventory> inventory) {
      OnListed(listing, i, std::move(inventory));
    });
  }
}

void RuntimeClients::List(size_t client, Known known,
                          std::function<void(StatusOr<RuntimeInventory>)> done) {
  Connections& connections = connections_[client];
  if (connections.hangs || connections.late) {
    loop_.Post([done = std::move(done)] { done(DeadlineExceeded("the runtime does not answer")); });
    return;
  }
  const uint64_t made = connections.made;
  clients_[client]->ListAll(
      connections.listed == made ? std::move(known) : Known(),
      [&connections, made, done = std::move(done)](StatusOr<RuntimeInventory> inventory) {
        if (inventory.ok() && !connections.late) connections.listed = made;
        connections.hangs = inventory.status().code() == StatusCode::kDeadlineExceeded;
        done(std::move(inventory));
      });
}

void RuntimeClients::Probe(size_t client) {
  Connections& connections = connections_[client];
  if (std::exchange(connections.probed, true)) return;
  clients_[client]->ListAll({}, [this, &connections](const StatusOr<RuntimeInventory>& inventory) {
    connections.probed = false;
    if (inventory.status().code() == StatusCode::kDeadlineExceeded) return;
    connections.hangs = false;
    if (inventory.ok()) events_.joined();
  });
}

void RuntimeClients::OnListed(const std::shared_ptr<Listing>& listing, size_t client,
                              StatusOr<RuntimeInventory> inventory) {
  if (listing->answers[client].has_value()) return OnLate(client, inventory.status());
  connections_[client].awaited = false;
  listing->answers[client] = std::move(inventory);
  if (listing->left() == 0) return End(*listing);
  WaitForRest(listing);
}

// Limits the wait for the others once one of them has answered.
void RuntimeClients::WaitForRest(const std::shared_ptr<Listing>& listing) {
  if (listing->grace != nullptr) return;
  std::chrono::milliseconds grace = kGrace;
  for (size_t i = 0; i < clients_.size(); ++i) {
    if (listing->answers[i].has_value()) continue;
    if (connections_[i].awaited) return;
    if (connections_[i].listed != connections_[i].made) grace = kFirstGrace;
  }
  // Weak: the timer must not keep the listing alive after all clients have answered.
  listing->grace = loop_.After(grace, [this, weak = std::weak_ptr<Listing>(listing)] {
    if (const auto kept = weak.lock()) OnGraceOver(kept);
  });
}

void RuntimeClients::OnGraceOver(const std::shared_ptr<Listing>& listing) {
  for (size_t i = 0; i < clients_.size(); ++i) {
    if (listing->answers[i].has_value()) continue;
    connections_[i].late = true;
    listing->answers[i] = DeadlineExceeded("it has not answered yet");
  }
  End(*listing);
}

void RuntimeClients::OnLate(size_t client, const Status& status) {
  Connections& connections = connections_[client];
  connections.late = false;
  if (!status.ok()) return;
  connections.awaited = true;
  events_.joined();
}

void RuntimeClients::End(Listing& listing) {
  if (std::exchange(listing.over, true)) return;
  listing.grace.reset();
  // In the order of the runtimes: if two of them list the same id, the first one gets it.
  for (size_t i = 0; i < clients_.size(); ++i)
    if (listing.answers[i]->ok()) Learn(i, **listing.answers[i], listing.begin);
  RuntimeInventory all;
  size_t worked = 0;
  for (size_t i = 0; i < clients_.size(); ++i) {
    StatusOr<RuntimeInventory>& inventory = *listing.answers[i];
    if (!inventory.ok()) {
      const std::string& name = backends_.all()[i].name;
      const Status why = Annotate(inventory.status(), fmt::format("runtime {}", name));
      if (all.unclear.why.ok()) all.unclear.why = why;
      all.unclear.runtimes.insert(name);
      AddUnlisted(i, all);
      continue;
    }
    ++worked;
    LeaveOutThoseOfOthers(i, *inventory);
    std::ranges::move(inventory->pods, std::back_inserter(all.pods));
    std::ranges::move(inventory->containers, std::back_inserter(all.containers));
    all.stopped_pods.merge(inventory->stopped_pods);
    all.unclear.pods.merge(inventory->unclear.pods);
    all.unclear.containers.merge(inventory->unclear.containers);
    all.brief.pods.merge(inventory->brief.pods);
    all.brief.containers.merge(inventory->brief.containers);
    if (all.unclear.why.ok()) all.unclear.why = inventory->unclear.why;
  }
  if (worked > 0) {
    listing.done(std::move(all));
  } else {
    listing.done(all.unclear.why);
  }
}

void RuntimeClients::Learn(size_t client, const RuntimeInventory& inventory,
                           IdOwners::ListBegin begin) {
  IdOwners& owners = backends_.owners();
  owners.SetAll(Kind::kPodSandbox, client, IdsIn(inventory.pods), begin);
  std::vector<std::string_view> uids;
  for (const Pod& pod : inventory.pods) {
    if (backends_.IsOfOther(client, pod.id.value())) continue;
    // As LearnList.
    const bool stopped = inventory.stopped_pods.contains(pod.id);
    if (stopped && owners.IsOfOther(Kind::kPodUid, pod.uid.value(), client)) continue;
    uids.push_back(pod.uid.value());
  }
  owners.SetAll(Kind::kPodUid, client, uids, begin);
  std::vector<std::string_view> ids;
  for (const RuntimeContainer& container : inventory.containers)
    if (!backends_.IsOfOther(client, container.pod_id.value())) ids.push_back(container.id.value());
  owners.SetAll(Kind::kContainer, client, ids, begin);
}

void RuntimeClients::LeaveOutThoseOfOthers(size_t client, RuntimeInventory& inventory) const {
  const auto drop = [](auto& values, auto& sets, const auto& is_of_other) {
    std::erase_if(values, [&](const auto& value) {
      if (!is_of_other(value)) return false;
      for (auto* const set : sets)
        set->erase(value.id);
      return true;
    });
  };
  const std::array container_sets = {&inventory.unclear.containers, &inventory.brief.containers};
  drop(inventory.containers, container_sets, [&](const RuntimeContainer& container) {
    return backends_.IsOfOther(client, container.pod_id.value(), container.id.value());
  });
  const std::array pod_sets = {&inventory.unclear.pods, &inventory.brief.pods,
                               &inventory.stopped_pods};
  drop(inventory.pods, pod_sets,
       [&](const Pod& pod) { return backends_.IsOfOther(client, pod.id.value()); });
}

void RuntimeClients::AddUnlisted(size_t client, RuntimeInventory& inventory) const {
  const IdOwners& owners = backends_.owners();
  for (const std::string_view id : owners.IdsOf(Kind::kPodSandbox, client))
    inventory.unclear.pods.insert(PodSandboxId(id));
  for (const std::string_view id : owners.IdsOf(Kind::kContainer, client))
    inventory.unclear.containers.insert(ContainerId(id));
}

}  // namespace resmgr
