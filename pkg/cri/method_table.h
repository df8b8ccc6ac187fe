// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/model/request.h"

namespace resmgr {

enum class Service { kRuntime, kImage, kOther };

// The properties of a request's method. Views into the path or into constants.
struct Method {
  // "/runtime.v1.RuntimeService/Version". A missing leading slash of a known path is added.
  std::string_view path;
  std::string_view name;  // "Version"
  Service service = Service::kOther;
  Operation operation = Operation::kOther;
  // Ends only when one side gives up (GetContainerEvents): never waited for on shutdown.
  bool endless = false;
  // A method of the RuntimeService that this build does not know: it may create, change or end pods
  // and containers.
  bool unknown = false;
  // The method's index in KnownMethodPaths(); for an unknown method the length of that list.
  size_t place = 0;
};

// Both API versions, runtime.v1 and runtime.v1alpha2, have the same methods. Never fails: an
// unknown method is kOther. The path must outlive the result.
Method ClassifyMethod(std::string_view path);

// The paths of all methods of the CRI (runtime.v1 and runtime.v1alpha2) that this build knows,
// which metrics count by name. Calls of other methods pass as well.
std::vector<std::string> KnownMethodPaths();

}  // namespace resmgr
