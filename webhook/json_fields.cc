// SPDX-License-Identifier: Apache-2.0
#include "webhook/json_fields.h"

namespace resmgr::webhook {

namespace {

using nlohmann::json;

StatusOr<const json*> MemberAt(const json& object, std::string_view name) {
  if (!object.is_object()) return InvalidArgument("what should hold \"{}\" is not an object", name);
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

}  // namespace

StatusOr<const json*> ObjectAt(const json& object, std::string_view name) {
  RESMGR_ASSIGN_OR_RETURN(const json* member, MemberAt(object, name));
  if (member != nullptr && !member->is_object()) {
    return InvalidArgument("\"{}\" must be an object", name);
  }
  return member;
}

StatusOr<std::string> StringAt(const json& object, std::string_view name) {
  RESMGR_ASSIGN_OR_RETURN(const json* member, MemberAt(object, name));
  if (member == nullptr) return std::string();
  if (!member->is_string()) return InvalidArgument("\"{}\" must be a string", name);
  return member->get<std::string>();
}

}  // namespace resmgr::webhook
