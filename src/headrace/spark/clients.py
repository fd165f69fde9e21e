"""The Java Kafka client's settings for a broker: the same address and security as in Python, in Java's words."""

from __future__ import annotations

from pathlib import Path

from headrace.log.broker import Broker

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def java_client(broker: Broker) -> dict[str, str]:
    """Options for consumers and producers inside the JVM."""
    found = {"bootstrap.servers": broker.bootstrap, "security.protocol": broker.security}
    if broker.sasl_mechanism:
        module = _MODULES[broker.sasl_mechanism]
        user, password = _quoted(broker.username), _quoted(broker.password)
        found["sasl.mechanism"] = broker.sasl_mechanism
        found["sasl.jaas.config"] = f"{module} required username={user} password={password};"
    if broker.ca_file:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": broker.ca_file}
    if broker.cert_file:
        found |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": Path(broker.cert_file).read_text(),
            "ssl.keystore.key": Path(broker.key_file).read_text(),
        }
    if broker.key_password:
        found["ssl.key.password"] = broker.key_password
    return found


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
