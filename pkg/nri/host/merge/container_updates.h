// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <google/protobuf/repeated_field.h>

#include "pkg/nri/host/merge/field_ledger.h"

namespace resmgr::nri {

using ContainerUpdateList = google::protobuf::RepeatedPtrField<api::ContainerUpdate>;

// Claims a plugin's updates of existing containers and returns those that set something, in the
// reply's order. Left out are those without an id (some plugins send them for the container that
// they were asked about), and conflicting ones that may fail. kFailedPrecondition: a conflict.
// kInvalidArgument: an impossible key, or an update of `created`, the container that is being
// created ("": none). After an error some fields are claimed; the caller must undo the ledger.
StatusOr<std::vector<const api::ContainerUpdate*>> ClaimUpdates(const ContainerUpdateList& updates,
                                                                std::string_view plugin,
                                                                std::string_view created,
                                                                FieldLedger& ledger);

// The sum of all plugins' updates of existing containers, one update for each, with exactly the
// fields that plugins set. Thread-compatible.
class ContainerUpdates {
 public:
  // Adds an update whose claims were granted. The result may fail if all of its updates may (NRI
  // 0.6).
  void Add(const api::ContainerUpdate& update);

  // In the order of the containers' first updates.
  const std::vector<api::ContainerUpdate>& all() const { return all_; }

 private:
  std::vector<api::ContainerUpdate> all_;
  std::unordered_map<std::string, size_t> places_;  // by container id
};

}  // namespace resmgr::nri
