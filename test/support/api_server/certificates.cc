// SPDX-License-Identifier: Apache-2.0
#include "test/support/api_server/certificates.h"

#include <cstdlib>
#include <memory>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace resmgr::test {
namespace {

using Key = std::shared_ptr<EVP_PKEY>;
using Certificate = std::shared_ptr<X509>;

constexpr long kDay = 24L * 60 * 60;
constexpr long kVersion3 = 2;

void Require(bool good) {
  if (!good) std::abort();  // OpenSSL without memory or random numbers
}

std::shared_ptr<BIO> Memory() {
  return {BIO_new(BIO_s_mem()), BIO_free_all};
}

std::string TextOf(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return {data, static_cast<size_t>(size)};
}

KeyPair ToPem(X509* certificate, EVP_PKEY* key) {
  const auto certificate_text = Memory();
  const auto key_text = Memory();
  Require(PEM_write_bio_X509(certificate_text.get(), certificate) == 1);
  Require(PEM_write_bio_PrivateKey(key_text.get(), key, nullptr, nullptr, 0, nullptr, nullptr) ==
          1);
  return {.certificate = TextOf(certificate_text.get()), .key = TextOf(key_text.get())};
}

void Extend(X509* certificate, int extension, const std::string& value) {
  X509_EXTENSION* made = X509V3_EXT_conf_nid(nullptr, nullptr, extension, value.c_str());
  Require(made != nullptr);
  X509_add_ext(certificate, made, -1);
  X509_EXTENSION_free(made);
}

// A certificate signed by `issuer_key`, or self-signed without an issuer.
KeyPair Make(const std::string& name, bool authority, X509* issuer, EVP_PKEY* issuer_key) {
  const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const Certificate certificate(X509_new(), X509_free);
  Require(key != nullptr && certificate != nullptr);
  long serial = 0;
  Require(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), 4) == 1);
  X509_set_version(certificate.get(), kVersion3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kDay);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate.get(),
                       issuer == nullptr ? subject : X509_get_subject_name(issuer));
  Extend(certificate.get(), NID_basic_constraints, authority ? "critical,CA:TRUE" : "CA:FALSE");
  if (!authority) {
    Extend(certificate.get(), NID_subject_alt_name, "IP:127.0.0.1,DNS:" + name);
  }
  Require(X509_sign(certificate.get(), issuer_key == nullptr ? key.get() : issuer_key,
                    EVP_sha256()) > 0);
  return ToPem(certificate.get(), key.get());
}

template <typename T>
std::shared_ptr<T> Read(const std::string& text, T* (*read)(BIO*, T**, pem_password_cb*, void*),
                        void (*release)(T*)) {
  const std::shared_ptr<BIO> memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
                                    BIO_free_all);
  return std::shared_ptr<T>(read(memory.get(), nullptr, nullptr, nullptr), release);
}

}  // namespace

TestAuthority::TestAuthority() : own_(Make("test-authority", true, nullptr, nullptr)) {}

KeyPair TestAuthority::Issue(const std::string& name) const {
  const Certificate issuer = Read<X509>(own_.certificate, PEM_read_bio_X509, X509_free);
  const Key key = Read<EVP_PKEY>(own_.key, PEM_read_bio_PrivateKey, EVP_PKEY_free);
  return Make(name, false, issuer.get(), key.get());
}

}  // namespace resmgr::test
