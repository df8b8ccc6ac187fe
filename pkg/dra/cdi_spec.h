// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pkg/topology/cpu_set.h"

namespace resmgr::dra {

// The file by which a runtime knows the CDI device of a claim (cdi spec 0.5.0): one file for each
// claim, since runtimes read a device that they have seen not again. Pure functions; `uid` is one
// that IsClaimUid accepts.

// The version of CDI that files say, and the end of their names.
inline constexpr std::string_view kCdiVersion = "0.5.0";
inline constexpr std::string_view kCdiExtension = ".json";

// The UID between the prefix and the end in the name of a file, also of one that is being written;
// nullopt for other names.
std::optional<std::string> UidInFileName(std::string_view prefix, std::string_view file_name);

// JSON: the device gives containers the variable with the claim's CPUs.
std::string CdiSpec(std::string_view kind, std::string_view uid, const CpuSet& cpus);

// "dra.k8s.io-cpu_claim-UID.json".
std::string CdiFileName(std::string_view kind, std::string_view uid);

// The UID in the name of such a file, of either kind, also of one that is being written; nullopt
// for files of others.
std::optional<std::string> UidOfCdiFile(std::string_view file_name);

}  // namespace resmgr::dra
