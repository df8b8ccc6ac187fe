// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/classes/class_kind.h"

namespace resmgr {

// Classes of caches and memory bandwidth (resctrl). Each class of the configuration is a group with
// our prefix, whose masks are values of one set: all are in force, or none. Containers come into
// their groups by their own CPUs, by their tasks or by the runtime. Groups of others are listed,
// and never touched.
std::unique_ptr<ClassKind> MakeRdtKind(const ClassContext& context);

}  // namespace resmgr
