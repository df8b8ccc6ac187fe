// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/nri/host/field_ledger.h"

namespace resmgr::nri {

// A key of an entry that a plugin removes is written with "-" in front (NRI 0.6): of annotations,
// mounts, environment variables, devices, namespaces, sysctls and network devices.

// The key that is removed; nullopt: the entry is set.
std::optional<std::string_view> RemovedKey(std::string_view written);
std::string Removal(std::string_view key);

// Claims of one entry, by its key without the mark. InvalidArgument: no entry can have such a key:
// an empty one, and of an environment variable one with "=" or NUL, which would pass for another.
Status ClaimEntry(const FieldLedger::Claimant& claimant, api::Field field, std::string_view key);
Status ClearEntry(const FieldLedger::Claimant& claimant, api::Field field, std::string_view key);

}  // namespace resmgr::nri
