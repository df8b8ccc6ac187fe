// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <google/protobuf/map.h>

#include "pkg/nri/host/merge/keyed_entries.h"

namespace resmgr::nri {

// One plugin's edits of a map, such as annotations, otherwise like ListEdits. Maps have no order:
// in the sum of all plugins' edits, apply removals first.
template <typename Value>
class MapEdits {
 public:
  using Entries = google::protobuf::Map<std::string, Value>;

  MapEdits(api::Field field, const Entries& reply) : field_(field), reply_(reply) {}

  Status Claim(const FieldLedger::Claimant& claimant) const {
    for (const auto& [written, value] : reply_) {
      if (const auto key = RemovedKey(written)) {
        RESMGR_RETURN_IF_ERROR(ClearEntry(claimant, field_, *key));
      }
    }
    for (const auto& [key, value] : reply_)
      if (!RemovedKey(key)) RESMGR_RETURN_IF_ERROR(ClaimEntry(claimant, field_, key));
    return OkStatus();
  }

  void AddTo(Entries& merged) const {
    ShowIn(merged);
    for (const auto& [written, value] : reply_)
      if (RemovedKey(written)) merged[written] = Value();
  }

  void ShowIn(Entries& shown) const {
    for (const auto& [written, value] : reply_)
      if (const auto key = RemovedKey(written)) shown.erase(std::string(*key));
    for (const auto& [key, value] : reply_)
      if (!RemovedKey(key)) shown[key] = value;
  }

 private:
  api::Field field_;
  const Entries& reply_;
};

}  // namespace resmgr::nri
