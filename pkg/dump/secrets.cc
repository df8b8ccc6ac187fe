// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/secrets.h"

#include <google/protobuf/descriptor.h>

namespace resmgr::dump {

bool IsSecret(const google::protobuf::FieldDescriptor& field) {
  const std::string_view message = field.containing_type()->name();
  const std::string_view name = field.name();
  // All fields: a name is half of a credential, and an address tells its owner.
  if (message == "AuthConfig") return true;
  if (message == "KeyValue") return name == "value";
  // NRI has "NAME=VALUE" texts for containers and for hooks.
  if (name == "env") return field.type() == google::protobuf::FieldDescriptor::TYPE_STRING;
  return name == "info" && field.is_map();
}

bool IsSecretAnnotation(std::string_view key) {
  return key == "kubectl.kubernetes.io/last-applied-configuration";
}

}  // namespace resmgr::dump
