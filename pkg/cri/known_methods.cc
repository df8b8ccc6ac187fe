// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/known_methods.h"

#include <fmt/format.h>

#include "pkg/api/runtime_v1.pb.h"

namespace resmgr {

std::vector<std::string> KnownMethodPaths() {
  const google::protobuf::FileDescriptor* file =
      ::runtime::v1::VersionRequest::descriptor()->file();
  std::vector<std::string> paths;
  for (int i = 0; i < file->service_count(); ++i) {
    const google::protobuf::ServiceDescriptor* service = file->service(i);
    for (int j = 0; j < service->method_count(); ++j) {
      for (const char* version : {"v1", "v1alpha2"}) {
        paths.push_back(
            fmt::format("/runtime.{}.{}/{}", version, service->name(), service->method(j)->name()));
      }
    }
  }
  return paths;
}

}  // namespace resmgr
