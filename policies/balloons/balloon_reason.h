// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/topology/cpu_set.h"

namespace resmgr {

// The reason of a placement in a balloon: a text, and at its end the CPUs that the balloon borrows
// and its own ones, by which they are found again after a restart, since containers may run on
// other ones, too.
std::string WithOwnCpus(const std::string& text, const CpuSet& own, const CpuSet& borrowed = {});
// The text of a container whose balloon has fewer CPUs than it asks for.
std::string ThatLacksCpus(const std::string& text);
// The text of a container that is in a balloon since its own type has no CPUs for it.
std::string TextForWantOfRoom(const std::string& text, const std::string& balloon,
                              const std::string& type);
// The text in front of the balloon's CPUs, and these CPUs; empty if the reason has none.
std::string TextOfReason(const std::string& reason);
CpuSet OwnCpusOfReason(const std::string& reason);
CpuSet BorrowedCpusOfReason(const std::string& reason);

}  // namespace resmgr
