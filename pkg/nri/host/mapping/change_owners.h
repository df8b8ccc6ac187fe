// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>

#include "pkg/model/adjustment.h"
#include "pkg/nri/host/merge/field_ledger.h"

namespace resmgr::nri {

// The plugin behind each change of a container's request, from the owners of the NRI fields that
// the change comes from. A value.
class ChangeOwners {
 public:
  ChangeOwners() = default;
  // Takes the owned fields of one container.
  explicit ChangeOwners(std::span<const OwnedField> owned);

  // The plugin's full name, for hooks "10-a,20-b"; "": no plugin.
  std::string PluginOf(const FieldChange& change) const;

 private:
  std::map<std::pair<api::Field, std::string>, std::string> plugins_;
};

}  // namespace resmgr::nri
