// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/model/problem.h"
#include "pkg/node/hook_hosting.h"
#include "pkg/node/nri_hosting.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {

// The problems of the hook servers and NRI plugins that a front door hosts.
inline std::vector<Problem> HostingProblems(const std::optional<HookHosting>& hooks,
                                            const std::optional<NriHosting>& nri) {
  std::vector<Problem> all;
  if (hooks) all = hooks->problems();
  if (nri) std::ranges::move(nri->problems(), std::back_inserter(all));
  return all;
}

// Adds a problem if no process listens at the socket. Does not block.
inline void AddUnreached(std::string_view what, const std::string& socket,
                         std::vector<Problem>& all) {
  const Status reached = ConnectUnix(socket).status();
  if (reached.ok()) return;
  all.push_back({.kind = "runtime",
                 .message = fmt::format("the {} cannot be reached: {}", what, Message(reached)),
                 .objects = {socket},
                 .next = "ss -lx, which shows whether its socket is there"});
}

// A runtime client that also reports each update by the brain that the runtime has accepted. Loop's
// thread only.
class UpdateTeller final : public RuntimeClient {
 public:
  using Told = std::function<void(const ContainerId& id, const ResourceValues& values)>;

  // `client` outlives this object. All that `told` uses must outlive the answers of `client`.
  UpdateTeller(RuntimeClient& client, Told told) : client_(client), told_(std::move(told)) {}

  void UpdateContainer(const ContainerId& id, const ResourceValues& adjustment,
                       std::function<void(Status)> done) override {
    client_.UpdateContainer(
        id, adjustment,
        [told = told_, id, adjustment, done = std::move(done)](const Status& status) {
          if (status.ok()) told(id, adjustment);
          done(status);
        });
  }
  void ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) override {
    client_.ListAll(std::move(known), std::move(done));
  }
  bool ListsTellNews() const override { return client_.ListsTellNews(); }
  bool WritesNotedValues() const override { return client_.WritesNotedValues(); }
  bool StartsExited() const override { return client_.StartsExited(); }
  bool Renames() const override { return client_.Renames(); }

 private:
  RuntimeClient& client_;
  const Told told_;
};

}  // namespace resmgr
