// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include "pkg/resmgr/runtime_client.h"

namespace resmgr {

// A runtime client that also reports the brain's updates of containers that the runtime has
// accepted. Loop's thread only.
class UpdateTeller final : public RuntimeClient {
 public:
  using Told = std::function<void(const ContainerId& id, const ResourceValues& values)>;

  // `client` outlives this object. Objects that `told` uses outlive the answers of `client`.
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
