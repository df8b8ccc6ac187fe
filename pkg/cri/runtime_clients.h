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

// Several runtimes as one for the resource manager: lists all of them, and sends an update to the
// runtime that has the container. Loop's thread only.
//
// While a runtime is away, a list has the pods and containers of the others, so that their calls go
// on; the known ones of the missing runtime are `unclear` in it, and keep their CPUs. A list fails
// if no runtime could be listed. A runtime that is slower than the others by kGrace counts as away,
// too, until it has answered: then its pods and containers are listed anew, and that list waits for
// it. If two runtimes have the same id, a list leaves out the entry of the runtime that had it
// later.
class RuntimeClients final : public RuntimeClient {
 public:
  // Grace for a runtime whose containers are known: these keep their CPUs meanwhile.
  static constexpr std::chrono::milliseconds kGrace{50};
  // Grace at the start, and after each connect.
  static constexpr std::chrono::milliseconds kFirstGrace{1'000};

  struct Events {
    // The first runtime was connected, or several at once: everything must be listed.
    std::function<void()> connected;
    // A further runtime was connected: its objects must be listed, too.
    std::function<void()> joined;
    // The last connected runtime was lost.
    std::function<void()> disconnected;
  };

  // One client for each of the backends, in their order. All of these must outlive this object.
  RuntimeClients(EventLoop& loop, Backends& backends, std::vector<RuntimeClient*> clients,
                 Events events);

  // Handles the connects of the clients with these positions. Clients that were tried together must
  // be reported in one call: the first list counts as complete for all runtimes that are not away
  // then.
  void OnConnected(std::span<const size_t> clients);
  void OnDisconnected(size_t client);
  // Whether one of them is connected.
  bool connected() const { return !connected_.empty(); }

  // kUnavailable: the container's runtime is away, or is unknown.
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
  // Each connection is listed completely once, whatever is known. For each client: the number of
  // its connections, and the last one that was listed.
  struct Connections {
    uint64_t made = 0;
    uint64_t listed = 0;
    bool hangs = false;
    bool late = false;     // a list continues that no caller waits for any more
    bool awaited = false;  // it was late and has answered: the next list waits for it
    bool probed = false;   // a list without a waiting caller is under way
  };
  std::vector<Connections> connections_;
};

}  // namespace resmgr
