// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>

#include "pkg/model/adjustment.h"
#include "pkg/nri/host/field_ledger.h"

namespace resmgr::nri {

// Which plugin made which change of a container's request: the owners of NRI's fields, by the
// fields that they become. A value.
class ChangeOwners {
 public:
  ChangeOwners() = default;
  // Of one container.
  explicit ChangeOwners(std::span<const OwnedField> owned);

  // Its full name, of hooks "10-a,20-b"; "": none.
  std::string PluginOf(const FieldChange& change) const;

 private:
  std::map<std::pair<api::Field, std::string>, std::string> plugins_;
};

}  // namespace resmgr::nri
