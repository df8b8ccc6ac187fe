// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "pkg/cri/backends.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Several runtimes as the one that the resource manager knows: lists all of them, and sends an
// update to the runtime that has the container. Loop's thread only.
//
// While a runtime is away, a list has the pods and containers of the others, so that their calls go
// on; what is known to be of the one that is away is `unclear` in it, and keeps its CPUs. A list
// fails where no runtime could be listed. A runtime that takes longer than the others by kGrace
// counts as one that is away, too, until it has answered: then its pods and containers are listed
// anew, and that list waits for it. If two runtimes have the same id, a list leaves out the entry
// of the runtime that had it later.
class RuntimeClients final : public RuntimeClient {
 public:
  // For a runtime whose containers are known: these keep their CPUs meanwhile.
  static constexpr std::chrono::milliseconds kGrace{50};
  // At the start, and after each connect.
  static constexpr std::chrono::milliseconds kFirstGrace{1'000};

  struct Events {
    // The first of them came, or several at once: everything is to be listed.
    std::function<void()> connected;
    // Another one came, or came back: what it has is to be listed, too.
    std::function<void()> joined;
    // The last of them went.
    std::function<void()> disconnected;
  };

  // One client for each of the backends, in their order. All of these must outlive it.
  RuntimeClients(EventLoop& loop, Backends& backends, std::vector<RuntimeClient*> clients,
                 Events events);

  // For the events of the clients with these positions. Those that were tried together are to be
  // told together: the first list counts as complete for all that are not away.
  void OnConnected(std::span<const size_t> clients);
  void OnDisconnected(size_t client);
  // Whether one of them is there.
  bool connected() const { return !connected_.empty(); }

  // Unavailable: the runtime that has it is away, or it is not known which one has it.
  void UpdateContainer(const ContainerId& id, const ResourceValues& adjustment,
                       std::function<void(Status)> done) override;
  void ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) override;

 private:
  struct Listing;

  void List(size_t client, Known known, std::function<void(StatusOr<RuntimeInventory>)> done);
  void Probe(size_t client);
  void OnListed(const std::shared_ptr<Listing>& listing, size_t client,
                StatusOr<RuntimeInventory> inventory);
  void WaitForRest(const std::shared_ptr<Listing>& listing);
  void OnGraceOver(const std::shared_ptr<Listing>& listing);
  void OnLate(size_t client, const Status& status);
  void End(Listing& listing);
  void Learn(size_t client, const RuntimeInventory& inventory, IdOwners::ListBegin begin);
  void LeaveOutThoseOfOthers(size_t client, RuntimeInventory& inventory) const;
  void AddUnlisted(size_t client, RuntimeInventory& inventory) const;

  EventLoop& loop_;
  Backends& backends_;
  const std::vector<RuntimeClient*> clients_;
  const Events events_;
  std::set<size_t> connected_;
  // Each connection is listed once with everything, whatever is known. By client: how many
  // connections it had, and the last one of these that was listed.
  struct Connections {
    uint64_t made = 0;
    uint64_t listed = 0;
    bool hangs = false;
    bool late = false;     // a list goes on that no other waits for any more
    bool awaited = false;  // it was late and has answered: the next list waits for it
    bool probed = false;   // a list of it is under way that no other waits for
  };
  std::vector<Connections> connections_;
};

}  // namespace resmgr
