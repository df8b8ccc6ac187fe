// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace resmgr::test {

// A certificate and its key, as PEM.
struct KeyPair {
  std::string certificate;
  std::string key;
};

// Certificates for tests of TLS, made on the spot and good for a day. Immutable.
class TestAuthority {
 public:
  TestAuthority();

  const std::string& certificate() const { return own_.certificate; }
  // A certificate for a server at 127.0.0.1 with this name, or for a client of this name.
  KeyPair Issue(const std::string& name) const;

 private:
  KeyPair own_;
};

}  // namespace resmgr::test
