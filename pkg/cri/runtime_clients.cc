// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/runtime_clients.h"

#include <iterator>
#include <string_view>
#include <utility>

namespace resmgr {

namespace {

using Kind = IdOwners::Kind;

template <typename Values>
std::vector<std::string_view> IdsIn(const Values& values) {
  std::vector<std::string_view> ids;
  for (const auto& value : values)
    ids.push_back(value.id.value());
  return ids;
}

std::vector<std::string_view> UidsOf(const std::vector<Pod>& pods) {
  std::vector<std::string_view> uids;
  for (const Pod& pod : pods)
    uids.push_back(pod.uid.value());
  return uids;
}

template <typename Values>
void MoveBehind(Values& from, Values& to) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

// One run of ListAll.
struct RuntimeClients::Listing {
  std::function<void(StatusOr<RuntimeInventory>)> done;
  IdOwners::ListBegin begin;
  size_t left = 0;
  size_t worked = 0;
  RuntimeInventory inventory{};
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
  const auto listing = std::make_shared<Listing>(Listing{
      .done = std::move(done), .begin = backends_.owners().BeginList(), .left = clients_.size()});
  for (size_t i = 0; i < clients_.size(); ++i) {
    if (connections_[i].hangs) Probe(i);
    List(i, known, [this, listing, i](StatusOr<RuntimeInventory> inventory) {
      OnListed(*listing, i, std::move(inventory));
    });
  }
}

void RuntimeClients::List(size_t client, Known known,
                          std::function<void(StatusOr<RuntimeInventory>)> done) {
  Connections& connections = connections_[client];
  if (connections.hangs) {
    loop_.Post([done = std::move(done)] { done(DeadlineExceeded("the runtime does not answer")); });
    return;
  }
  const uint64_t made = connections.made;
  clients_[client]->ListAll(
      connections.listed == made ? std::move(known) : Known(),
      [&connections, made, done = std::move(done)](StatusOr<RuntimeInventory> inventory) {
        if (inventory.ok()) connections.listed = made;
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

void RuntimeClients::OnListed(Listing& listing, size_t client,
                              StatusOr<RuntimeInventory> inventory) {
  RuntimeInventory& all = listing.inventory;
  if (inventory.ok()) {
    ++listing.worked;
    IdOwners& owners = backends_.owners();
    owners.SetAll(Kind::kPodSandbox, client, IdsIn(inventory->pods), listing.begin);
    owners.SetAll(Kind::kContainer, client, IdsIn(inventory->containers), listing.begin);
    owners.SetAll(Kind::kPodUid, client, UidsOf(inventory->pods), listing.begin);
    MoveBehind(inventory->pods, all.pods);
    MoveBehind(inventory->containers, all.containers);
    all.stopped_pods.merge(inventory->stopped_pods);
    all.unclear.pods.merge(inventory->unclear.pods);
    all.unclear.containers.merge(inventory->unclear.containers);
    all.brief.pods.merge(inventory->brief.pods);
    all.brief.containers.merge(inventory->brief.containers);
    if (all.unclear.why.ok()) all.unclear.why = inventory->unclear.why;
  } else {
    const Status why =
        Annotate(inventory.status(), fmt::format("runtime {}", backends_.all()[client].name));
    if (all.unclear.why.ok()) all.unclear.why = why;
    all.unclear.runtimes.insert(backends_.all()[client].name);
    AddUnlisted(client, all);
  }
  if (--listing.left > 0) return;
  if (listing.worked > 0) {
    listing.done(std::move(all));
  } else {
    listing.done(all.unclear.why);
  }
}

void RuntimeClients::AddUnlisted(size_t client, RuntimeInventory& inventory) const {
  const IdOwners& owners = backends_.owners();
  for (const std::string_view id : owners.IdsOf(Kind::kPodSandbox, client))
    inventory.unclear.pods.insert(PodSandboxId(id));
  for (const std::string_view id : owners.IdsOf(Kind::kContainer, client))
    inventory.unclear.containers.insert(ContainerId(id));
}

}  // namespace resmgr
