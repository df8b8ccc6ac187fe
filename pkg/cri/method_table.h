// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/model/operation.h"

namespace resmgr {

enum class Service { kRuntime, kImage, kOther };

// What a request's path tells. Views into the path or into constants.
struct Method {
  // "/runtime.v1.RuntimeService/Version". A known path that comes without the slash in front gets
  // one.
  std::string_view path;
  std::string_view name;  // "Version"
  Service service = Service::kOther;
  Operation operation = Operation::kOther;
  // Ends only when one side gives up (GetContainerEvents): never waited for on shutdown.
  bool endless = false;
  // Of the RuntimeService, and none of those that this build knows: it may make, change or end
  // pods and containers.
  bool unknown = false;
  // Its place among KnownMethodPaths(); their number for any other.
  size_t place = 0;
};

// Both API versions, runtime.v1 and runtime.v1alpha2, have the same methods. Never fails: what is
// not known is kOther. The path must outlive the result.
Method ClassifyMethod(std::string_view path);

}  // namespace resmgr
