// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/method_table.h"

#include <array>
#include <functional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/base/ids.h"

namespace resmgr {
namespace {

constexpr std::array<std::pair<std::string_view, Operation>, 10> kOperations = {{
    {"RunPodSandbox", Operation::kRunPodSandbox},
    {"StopPodSandbox", Operation::kStopPodSandbox},
    {"RemovePodSandbox", Operation::kRemovePodSandbox},
    {"CreateContainer", Operation::kCreateContainer},
    {"StartContainer", Operation::kStartContainer},
    {"StopContainer", Operation::kStopContainer},
    {"RemoveContainer", Operation::kRemoveContainer},
    {"UpdateContainerResources", Operation::kUpdateContainerResources},
    {"ContainerStatus", Operation::kContainerStatus},
    {"UpdatePodSandboxResources", Operation::kUpdatePodSandboxResources},
}};

Service ClassifyService(std::string_view service) {
  for (const std::string_view package : {"runtime.v1.", "runtime.v1alpha2."}) {
    if (service.substr(0, package.size()) != package) continue;
    const std::string_view name = service.substr(package.size());
    if (name == "RuntimeService") return Service::kRuntime;
    if (name == "ImageService") return Service::kImage;
  }
  return Service::kOther;
}

// The position of each known path in KnownMethodPaths().
struct MethodPlaces {
  MethodPlaces() {
    for (size_t i = 0; i < paths.size(); ++i)
      places.emplace(paths[i], i);
  }

  size_t PlaceOf(std::string_view path) const {
    const auto found = places.find(path);
    return found == places.end() ? places.size() : found->second;
  }

  // The path at a position; `other` for unknown ones.
  std::string_view PathAt(size_t place, std::string_view other) const {
    return place < paths.size() ? std::string_view(paths[place]) : other;
  }

  const std::vector<std::string> paths = KnownMethodPaths();
  std::unordered_map<std::string, size_t, TextHash, std::equal_to<>> places;
};

const MethodPlaces& Places() {
  static const auto* const kPlaces = new MethodPlaces();
  return *kPlaces;
}

}  // namespace

Method ClassifyMethod(std::string_view path) {
  Method method{.path = path, .name = path, .place = Places().PlaceOf(path)};
  const size_t slash = path.rfind('/');
  if (slash == 0 || slash == std::string_view::npos) return method;
  // gRPC's server in Go accepts a path without the leading slash.
  const size_t begin = path.front() == '/' ? 1 : 0;
  method.name = path.substr(slash + 1);
  method.service = ClassifyService(path.substr(begin, slash - begin));
  if (begin == 0 && method.service != Service::kOther) {
    method.place = Places().PlaceOf("/" + std::string(path));
    method.path = Places().PathAt(method.place, path);
  }
  if (method.service != Service::kRuntime) return method;
  for (const auto& [name, operation] : kOperations) {
    if (method.name == name) method.operation = operation;
  }
  method.endless = method.name == "GetContainerEvents";
  method.unknown = method.place == Places().places.size();
  return method;
}

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
