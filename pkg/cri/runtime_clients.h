// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "pkg/cri/backends.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Several runtimes as the one that the resource manager knows: lists all of them, and sends an
// update to the runtime that has the container. Loop's thread only.
//
// While a runtime is away, a list has the pods and containers of the others; what is known to be of
// the one that is away is `unclear` in it, so that it keeps its CPUs. Only a runtime that has never
// been listed makes the list fail: which CPUs its containers are on is not known.
class RuntimeClients final : public RuntimeClient {
 public:
  struct Events {
    // A runtime came, or came back: everything is to be listed.
    std::function<void()> connected;
    // The last of them went.
    std::function<void()> disconnected;
  };

  // One client for each of the backends, in their order. All of these must outlive it.
  RuntimeClients(EventLoop& loop, Backends& backends, std::vector<RuntimeClient*> clients,
                 Events events);

  // For the events of the client with this position.
  void OnConnected(size_t client);
  void OnDisconnected(size_t client);
  // Whether one of them is there.
  bool connected() const { return !connected_.empty(); }

  // Unavailable: the runtime that has it is away, or it is not known which one has it.
  void UpdateContainer(const ContainerId& id, const ResourceValues& adjustment,
                       std::function<void(Status)> done) override;
  void ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) override;

 private:
  struct Listing;

  void OnListed(Listing& listing, size_t client, StatusOr<RuntimeInventory> inventory);
  void AddUnlisted(size_t client, RuntimeInventory& inventory) const;

  EventLoop& loop_;
  Backends& backends_;
  const std::vector<RuntimeClient*> clients_;
  const Events events_;
  std::set<size_t> connected_;
  std::set<size_t> listed_;  // at least once
};

}  // namespace resmgr
