/** The wire codec as a function, for tests that compare it with Python's. */
package headrace

import com.fasterxml.jackson.databind.ObjectMapper

object Settle {
  /** A value decoded by these fields and encoded again, or the words it dies of. */
  def value(fields: String, bytes: Array[Byte]): String = {
    val found = Field.parse(new ObjectMapper().readTree(fields))
    val decoder = new WireDecoder(found, Map.empty)
    try { decoder.decode(bytes); new String(new WireEncoder(Field.schema(found)).encode(decoder.row), "UTF-8") }
    catch { case dead: Dead => dead.getMessage }
  }
}
