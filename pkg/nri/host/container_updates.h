// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <google/protobuf/repeated_field.h>

#include "pkg/nri/host/field_ledger.h"

namespace resmgr::nri {

using ContainerUpdateList = google::protobuf::RepeatedPtrField<api::ContainerUpdate>;

// What one plugin's reply wants of containers that exist: the updates that set something, in the
// reply's order. Left out are those without an id (some plugins send them for the container that
// they were asked about), and those that may fail and are in conflict. FailedPrecondition: a
// conflict. InvalidArgument: a key that nothing can have, or an update of `created`, the container
// that is being created ("": none). After an error some is claimed; the ledger is to be undone.
StatusOr<std::vector<const api::ContainerUpdate*>> ClaimUpdates(const ContainerUpdateList& updates,
                                                                std::string_view plugin,
                                                                std::string_view created,
                                                                FieldLedger& ledger);

// What all plugins want of containers that exist, one update for each, with the fields that plugins
// set and no others. Thread-compatible.
class ContainerUpdates {
 public:
  // The claims were granted. It may fail if all say so (NRI 0.6).
  void Add(const api::ContainerUpdate& update);

  // In the order in which containers were named first.
  const std::vector<api::ContainerUpdate>& all() const { return all_; }

 private:
  std::vector<api::ContainerUpdate> all_;
  std::unordered_map<std::string, size_t> places_;  // by container id
};

}  // namespace resmgr::nri
