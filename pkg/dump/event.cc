// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/event.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "pkg/api/nri.pb.h"
#include "pkg/api/runtime_v1.pb.h"

namespace resmgr::dump {
namespace {

// "RuntimeService/Version" from a path of either version of the API, else "".
std::string_view WithoutPackage(std::string_view path) {
  for (const std::string_view package : {"/runtime.v1.", "/runtime.v1alpha2."}) {
    if (path.substr(0, package.size()) == package) return path.substr(package.size());
  }
  return {};
}

// Finds NRI's message types by the method's name, since NRI's descriptors have no services. A few
// methods have messages of other names.
MethodTypes FindNriTypes(std::string_view method) {
  using nri::pkg::api::v1alpha1::Empty;
  using nri::pkg::api::v1alpha1::StateChangeEvent;
  if (method == "StateChange") {
    return {&StateChangeEvent::default_instance(), &Empty::default_instance()};
  }
  const auto* file = Empty::descriptor()->file();
  const auto find = [&](std::string_view suffix) -> const google::protobuf::Message* {
    const auto* type = file->FindMessageTypeByName(std::string(method) + std::string(suffix));
    if (type == nullptr) return &Empty::default_instance();
    return google::protobuf::MessageFactory::generated_factory()->GetPrototype(type);
  };
  return {find("Request"), find("Response")};
}

}  // namespace

MethodTypes FindMethodTypes(std::string_view path) {
  if (path.starts_with("/nri.pkg.api.v1alpha1.")) return FindNriTypes(MethodName(path));
  const std::string_view name = WithoutPackage(path);
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return {};
  const auto* file = runtime::v1::VersionRequest::descriptor()->file();
  const auto* service = file->FindServiceByName(std::string(name.substr(0, slash)));
  if (service == nullptr) return {};
  const auto* method = service->FindMethodByName(std::string(name.substr(slash + 1)));
  if (method == nullptr) return {};
  auto* factory = google::protobuf::MessageFactory::generated_factory();
  return {factory->GetPrototype(method->input_type()),
          factory->GetPrototype(method->output_type())};
}

std::string_view MethodName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace resmgr::dump
