// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <google/protobuf/repeated_field.h>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
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
  // Adds an update whose claims were granted. The merged update ignores failures only if each of
  // its parts does (NRI 0.6).
  void Add(const api::ContainerUpdate& update);

  // In the order of the containers' first updates.
  const std::vector<api::ContainerUpdate>& all() const { return all_; }

 private:
  std::vector<api::ContainerUpdate> all_;
  std::unordered_map<std::string, size_t> places_;  // by container id
};

// Merges plugins' updates of existing containers, in the order in which the plugins are asked:
// while one of them, the target, is updated, or while one is stopped. A field is set by one plugin.
// Takes time in proportion to the replies. Thread-compatible.
class UpdateMerge {
 public:
  // For a stop: without a target.
  UpdateMerge() = default;
  // The target with its requested resources; its id is the one that plugins know.
  explicit UpdateMerge(api::UpdateContainerRequest request) : request_(std::move(request)) {}

  // Takes a plugin's reply; `plugin` is its full name. Errors are those of AdjustmentMerge::Add;
  // they change nothing.
  Status Add(std::string_view plugin, const ContainerUpdateList& updates);

  // The request to the next plugin: the target's requested resources, overlaid with the plugins'
  // values (NRI 0.6).
  const api::UpdateContainerRequest& request() const { return request_; }
  // The plugins' values for the target, and no others.
  const api::LinuxResources& target() const { return target_; }
  // The updates of other containers.
  const std::vector<api::ContainerUpdate>& updates() const { return updates_.all(); }

  // The owned fields of one container, which plugins know by this id.
  std::vector<OwnedField> owned(std::string_view container_id) const {
    return ledger_.Of(container_id);
  }

 private:
  api::UpdateContainerRequest request_;
  api::LinuxResources target_;
  ContainerUpdates updates_;
  FieldLedger ledger_;
};

}  // namespace resmgr::nri
