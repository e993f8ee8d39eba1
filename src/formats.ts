/**
 * The four string formats that a form may ask for: `email`, `uri`, `date` and `date-time`.
 * {@link https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema}
 *
 * Written here, not taken from a library, because a form is checked synchronously on a path where nothing else needs a
 * schema library. Each runs in time linear in the length of the value, whatever the value. The schema validator uses
 * these same functions, so that a value cannot pass one check and fail the other.
 */

/** The formats of a form's string field. */
export type FormFormat = "email" | "uri" | "date" | "date-time";

const LOCAL_PART = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i;
const HOST_LABEL = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/i;
// RFC 5321 bounds a mailbox by 64 + 1 + 255 octets; a longer text is no address, and is not looked at further.
const LONGEST_EMAIL = 320;

/** An address with a dotted host name, in ASCII, without quoting or comments (RFC 5321 as forms use it). */
export function isEmail(text: string): boolean {
  if (text.length > LONGEST_EMAIL) return false;
  const at = text.lastIndexOf("@");
  if (at < 1 || !LOCAL_PART.test(text.slice(0, at))) return false;
  const labels = text.slice(at + 1).split(".");
  return labels.length > 1 && labels.every((label) => HOST_LABEL.test(label));
}

const DATE = /^(\d{4})-(\d\d)-(\d\d)$/;
const MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** A calendar date that exists (RFC 3339 full-date). */
export function isDate(text: string): boolean {
  const parts = DATE.exec(text);
  if (parts === null) return false;
  const [year, month, day] = [Number(parts[1]), Number(parts[2]), Number(parts[3])];
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const days = month === 2 && leap ? 29 : (MONTH_DAYS[month - 1] ?? 0);
  return day >= 1 && day <= days;
}

const TIME = /^(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:z|([+-])(\d\d):(\d\d))$/i;

/** A date, "T" and a time with its offset (RFC 3339 date-time). A leap second counts where UTC can have one. */
export function isDateTime(text: string): boolean {
  if (text.charCodeAt(10) !== 84 && text.charCodeAt(10) !== 116) return false;
  if (!isDate(text.slice(0, 10))) return false;
  const parts = TIME.exec(text.slice(11));
  if (parts === null) return false;
  const [hour, minute, second] = [Number(parts[1]), Number(parts[2]), Number(parts[3])];
  const [offsetHour, offsetMinute] = [Number(parts[5] ?? 0), Number(parts[6] ?? 0)];
  if (hour > 23 || minute > 59 || offsetHour > 23 || offsetMinute > 59) return false;
  if (second < 60) return true;
  const offset = (offsetHour * 60 + offsetMinute) * (parts[4] === "-" ? -1 : 1);
  const utcMinute = (hour * 60 + minute - offset + 2880) % 1440;
  return second === 60 && utcMinute === 1439;
}

const URI = /^[a-z][a-z0-9+.-]*:(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#([^#]*))?$/is;
const NOT_IN_URI = /[^\w\-.~:/?#[\]@!$&'()*+,;=%]|%(?![0-9a-f]{2})/i;
const HOST_AND_PORT = /^(?:\[([0-9a-f:.]+|v[0-9a-f]+\.[\w\-.~!$&'()*+,;=:]+)\]|[^:[\]@]*)(?::\d*)?$/i;

/** An absolute URI in the characters that RFC 3986 allows; whether anything answers there is not asked. */
export function isUri(text: string): boolean {
  if (NOT_IN_URI.test(text)) return false;
  const parts = URI.exec(text);
  if (parts === null) return false;
  const [, authority, path = "", query = "", fragment = ""] = parts;
  if (/[[\]]/.test(path) || /[[\]]/.test(query) || /[[\]]/.test(fragment)) return false;
  if (authority === undefined) return path !== "" || query !== "";
  const at = authority.indexOf("@");
  if (at >= 0 && /[[\]]/.test(authority.slice(0, at))) return false;
  const host = HOST_AND_PORT.exec(authority.slice(at + 1));
  if (host === null) return false;
  const literal = host[1];
  return literal === undefined || /^v/i.test(literal) || URL.canParse(`http://[${literal}]/`);
}

/** The check of each format. */
export const FORM_FORMATS: Readonly<Record<FormFormat, (text: string) => boolean>> = {
  email: isEmail,
  uri: isUri,
  date: isDate,
  "date-time": isDateTime,
};
