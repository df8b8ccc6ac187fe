// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// The CPUs of a mask in the kernel's format: hexadecimal numbers of up to eight digits with commas
// between them, the highest CPUs in front ("0000,00003003"). White space around it is ignored.
StatusOr<CpuSet> ParseCpuMask(std::string_view text);

// The mask of these CPUs with as many digits as `like`, or more if the CPUs need more.
std::string FormatCpuMask(const CpuSet& cpus, std::string_view like);

// The mask `first` without these CPUs, or all other online CPUs if none of `first` that is online
// would be left (`online` empty: not known); "" if that is `first`. FailedPrecondition: no CPU is
// left; the message names the file at `path`.
StatusOr<std::string> MaskWithout(std::string_view first, const CpuSet& without,
                                  const CpuSet& online, std::string_view path);

}  // namespace resmgr
