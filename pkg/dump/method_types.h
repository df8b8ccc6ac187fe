// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace resmgr::dump {

// Empty messages of a CRI or NRI call's types, to be copied with New(). Static, never freed.
struct MethodTypes {
  const google::protobuf::Message* request = nullptr;
  const google::protobuf::Message* reply = nullptr;
};

// By gRPC path, the same types for runtime.v1 and runtime.v1alpha2, whose field numbers agree;
// NRI's methods by paths of the same form. Both null for a path that is of neither as we know it.
// Thread-safe.
MethodTypes FindMethodTypes(std::string_view path);

// The last element of a gRPC path: "Version". The path itself when it has no slash.
std::string_view MethodName(std::string_view path);

}  // namespace resmgr::dump
