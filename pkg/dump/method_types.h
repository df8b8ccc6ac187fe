// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace resmgr::dump {

// Empty messages of a CRI or NRI call's types, for copying with New(). Static, never freed.
struct MethodTypes {
  const google::protobuf::Message* request = nullptr;
  const google::protobuf::Message* reply = nullptr;
};

// Finds the types by gRPC path, the same for runtime.v1 and runtime.v1alpha2, whose field numbers
// agree; NRI's methods have paths of the same form. Both are null for an unknown path. Thread-safe.
MethodTypes FindMethodTypes(std::string_view path);

// The last element of a gRPC path: "Version". The path itself when it has no slash.
std::string_view MethodName(std::string_view path);

}  // namespace resmgr::dump
