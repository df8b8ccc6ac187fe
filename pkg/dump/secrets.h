// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace google::protobuf {
class FieldDescriptor;
}  // namespace google::protobuf

namespace resmgr::dump {

// Replaces a secret.
inline constexpr std::string_view kRedacted = "<redacted>";

// Whether the field's values are secrets: credentials of a registry, values of environment
// variables, and the free-form `info` of verbose replies, in which runtimes repeat both.
bool IsSecret(const google::protobuf::FieldDescriptor& field);

// Whether the annotation of this key repeats the pod's manifest, environment included.
bool IsSecretAnnotation(std::string_view key);

}  // namespace resmgr::dump
